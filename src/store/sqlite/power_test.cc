// The power fails: what was written and not synced is gone (I11). This program keeps a copy of each
// file as it was at its last sync: its fsync and fdatasync stand before the C library's.
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "gtest/gtest.h"
#include "store/sqlite/folder_test_support.h"
#include "store/sqlite/sqlite_database.h"

namespace {

class Disk {
 public:
  void Watch(const std::string& folder) {
    absl::MutexLock lock(&mutex_);
    folder_ = folder;
    synced_.clear();
  }
  void Synced(int fd) {
    absl::MutexLock lock(&mutex_);
    if (folder_.empty()) return;
    std::error_code error;
    const std::string path =
        std::filesystem::read_symlink(absl::StrCat("/proc/self/fd/", fd), error).string();
    if (!absl::StartsWith(path, folder_) || !std::filesystem::is_regular_file(path, error)) return;
    std::ostringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    synced_[std::filesystem::path(path).filename().string()] = bytes.str();
  }
  // What the disk holds when the power comes back. Folders are synced by SQLite when a file goes.
  void WriteTo(const std::string& folder) {
    absl::MutexLock lock(&mutex_);
    for (const auto& [name, bytes] : synced_) {
      if (!std::filesystem::exists(absl::StrCat(folder_, "/", name))) continue;
      std::ofstream(absl::StrCat(folder, "/", name), std::ios::binary) << bytes;
    }
    folder_.clear();
  }

 private:
  absl::Mutex mutex_;
  std::string folder_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> synced_ ABSL_GUARDED_BY(mutex_);
};

Disk& TheDisk() {
  static Disk* const disk = new Disk;
  return *disk;
}

}  // namespace

extern "C" int fsync(int fd) {
  const int rc = static_cast<int>(syscall(SYS_fsync, fd));
  if (rc == 0) TheDisk().Synced(fd);
  return rc;
}
extern "C" int fdatasync(int fd) {
  const int rc = static_cast<int>(syscall(SYS_fdatasync, fd));
  if (rc == 0) TheDisk().Synced(fd);
  return rc;
}

namespace matins::sqlite {
namespace {

class Power : public FolderTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(FolderTest::SetUp());
    before_ = absl::StrCat(folder_, "/before");
    after_ = absl::StrCat(folder_, "/after");
    std::filesystem::create_directory(before_);
    std::filesystem::create_directory(after_);
    TheDisk().Watch(before_);
  }

  static absl::StatusOr<Ticket> Running(Database& database, Store& store) {
    ASSIGN_OR_RETURN(const std::unique_ptr<ActStore> acts, database.OpenActs());
    ApplyRequest apply;
    Job job;
    job.name = "a";
    apply.jobs = {{job, "{\"name\":\"a\"}"}};
    apply.source = "test";
    RETURN_IF_ERROR(acts->Apply(apply).status());
    PlanRequest plan;
    plan.writes.resize(1);
    plan.writes[0].job = "a";
    plan.writes[0].expected_revision = 1;
    Intent intent;
    intent.key = {"a", "2026-10-30"};
    intent.due = intent.not_before = absl::Now() - absl::Minutes(1);
    plan.writes[0].intents = {intent};
    RETURN_IF_ERROR(store.Plan(plan).status());
    StartRequest start;
    start.node.name = "n1";
    start.nonce = 5;
    start.keys = {intent.key};
    ASSIGN_OR_RETURN(const StartAnswers answers, store.Start(start));
    if (!answers.rows.at(0).claim) return absl::InternalError(answers.rows[0].blocker);
    return TicketOf(*answers.rows[0].claim);
  }

  std::string before_, after_;
};

TEST_F(Power, WhatWasAcknowledgedIsThereWhenItComesBack) {
  auto database = NewDatabase(absl::StrCat(before_, "/matins.db"), {});
  ASSERT_TRUE(database->Migrate().ok());
  auto store = database->Open();
  ASSERT_TRUE(store.ok()) << store.status();
  const auto ticket = Running(*database, **store);
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  FinishRequest finish;
  finish.ticket = *ticket;
  finish.node = "n1";
  const auto answers = (*store)->Finish({&finish, 1});
  ASSERT_TRUE(answers.ok()) << answers.status();
  ASSERT_TRUE(answers->at(0).accepted());
  TheDisk().WriteTo(after_);

  auto again = NewDatabase(absl::StrCat(after_, "/matins.db"), {});
  auto acts = again->OpenActs();
  ASSERT_TRUE(acts.ok()) << acts.status();
  const auto rows = (*acts)->ReadRows({});
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ(rows->at(0).status, PeriodStatus::kDone);
}

}  // namespace
}  // namespace matins::sqlite
