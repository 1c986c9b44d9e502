#include "demo/stage.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "backends/backends.h"
#include "base/status.h"
#include "base/time.h"
#include "demo/fence.h"
#include "demo/ledger.h"
#include "job/parse.h"
#include "ops/jobs.h"
#include "ops/node.h"

namespace matins::demo {
namespace {

absl::StatusOr<std::string> MakeFolder(const std::string& wanted) {
  if (wanted.empty()) {
    const char* base = std::getenv("TMPDIR");
    std::string path =
        absl::StrCat(base == nullptr || *base == '\0' ? "/tmp" : base, "/matins-demo-XXXXXX");
    if (mkdtemp(path.data()) == nullptr) {
      return BadInput(path, absl::StrCat("no folder could be made: ", std::strerror(errno)),
                      "name one with --dir");
    }
    return path;
  }
  if (mkdir(wanted.c_str(), 0700) != 0 && errno != EEXIST) {
    return BadInput(wanted, absl::StrCat("the folder could not be made: ", std::strerror(errno)),
                    "name another --dir");
  }
  char* real = realpath(wanted.c_str(), nullptr);
  std::string path = real == nullptr ? wanted : real;
  std::free(real);
  return path;
}

// In MariaDB each is a database of its own: "mariadb://host/matins?..." with `_suffix` behind its
// name.
std::string WithSuffix(const std::string& url, absl::string_view suffix) {
  const size_t end = std::min(url.find('?'), url.size());
  const size_t path = url.find('/', url.find("//") + 2);
  const bool named = path != std::string::npos && path + 1 < end;
  return absl::StrCat(url.substr(0, end),
                      named        ? ""
                      : path < end ? "matins"
                                   : "/matins",
                      suffix, url.substr(end));
}

// The ledger lies beside the scheduler's store: in its own file, schema or database.
std::string LedgerUrl(const std::string& store_url, const std::string& folder,
                      const std::string& name) {
  if (absl::StartsWith(store_url, "sqlite:"))
    return absl::StrCat("sqlite:", folder, "/", name, "-ledger.db");
  if (absl::StartsWith(store_url, "mariadb:"))
    return WithSuffix(store_url, absl::StrCat("_", name, "_ledger"));
  const size_t at = store_url.find("schema=");
  if (at == std::string::npos) {
    return absl::StrCat(store_url, absl::StrContains(store_url, '?') ? "&" : "?", "schema=matins_",
                        name, "_ledger");
  }
  const size_t end = std::min(store_url.find('&', at), store_url.size());
  return absl::StrCat(store_url.substr(0, end), "_", name, "_ledger", store_url.substr(end));
}

// Each stage has a store of its own, so that the story's night and the demo do not meet.
std::string StoreUrl(const std::string& wanted, const std::string& folder,
                     const std::string& name) {
  if (wanted.empty()) return absl::StrCat("sqlite:", folder, "/", name, ".db");
  if (name == "demo" || absl::StartsWith(wanted, "sqlite:")) return wanted;
  if (absl::StartsWith(wanted, "mariadb:")) return WithSuffix(wanted, absl::StrCat("_", name));
  const size_t at = wanted.find("schema=");
  if (at == std::string::npos)
    return absl::StrCat(wanted, absl::StrContains(wanted, '?') ? "&" : "?", "schema=matins_", name);
  const size_t end = std::min(wanted.find('&', at), wanted.size());
  return absl::StrCat(wanted.substr(0, end), "_", name, wanted.substr(end));
}

}  // namespace

absl::CivilDay NewestDueDay() {
  absl::TimeZone zone;
  absl::LoadTimeZone(kZone, &zone);
  const absl::CivilSecond local = absl::ToCivilSecond(absl::Now(), zone);
  return absl::CivilDay(local) - (local.hour() >= 1 ? 1 : 2);
}

absl::StatusOr<std::unique_ptr<Stage>> Stage::Open(const DemoOptions& options,
                                                   const std::string& name) {
  std::unique_ptr<Stage> stage(new Stage);
  stage->name_ = name;
  ASSIGN_OR_RETURN(stage->folder_, MakeFolder(options.folder));
  stage->store_url_ = StoreUrl(options.store, stage->folder_, name);
  stage->ledger_url_ = LedgerUrl(stage->store_url_, stage->folder_, name);
  ASSIGN_OR_RETURN(stage->ledger_, OpenSql(stage->ledger_url_));
  RETURN_IF_ERROR(MakeLedger(*stage->ledger_));
  RETURN_IF_ERROR(MakeFence(*stage->ledger_));
  ASSIGN_OR_RETURN(stage->database_, DatabaseFromUrl(stage->store_url_, DatabaseOptions{}));
  RETURN_IF_ERROR(stage->database_->Migrate());
  ASSIGN_OR_RETURN(Session session,
                   Session::Open(*stage->database_, absl::StrCat("demo:", WhoAmI())));
  stage->session_ = std::make_unique<Session>(std::move(session));
  return stage;
}

absl::Status Stage::Fill(absl::CivilDay first, absl::CivilDay last) {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  const int64_t days = last - first + 1;
  int64_t payments = 0;
  for (absl::CivilDay day = first; day <= last; ++day) {
    ASSIGN_OR_RETURN(const bool there, HasDay(*ledger_, day));
    if (!there) RETURN_IF_ERROR(FillDay(*ledger_, day).status());
    const int64_t number = day - first + 1;
    if (terminal)
      std::printf("\rpayments and statements: day %lld of %lld", static_cast<long long>(number),
                  static_cast<long long>(days));
    std::fflush(stdout);
  }
  ASSIGN_OR_RETURN(const Answer count, ledger_->Do("SELECT COUNT(*) FROM payment"));
  payments = count.Number(0, 0);
  std::printf("%s%lld days from %s to %s: %lld payments, and the channel's statements of them\n",
              terminal ? "\r" : "", static_cast<long long>(days), FormatDay(first).c_str(),
              FormatDay(last).c_str(), static_cast<long long>(payments));
  return absl::OkStatus();
}

absl::Status Stage::Apply(JobsFileOptions options) {
  options.program = OwnProgram();
  options.ledger = ledger_url_;
  const std::string path = absl::StrCat(folder_, "/", name_, "-jobs.yaml");
  {
    std::ofstream file(path);
    file << JobsFile(options);
    if (!file.flush()) return BadInput(path, "cannot be written", "name another --dir");
  }
  ASSIGN_OR_RETURN(const JobFile file, ParseJobFile(path));
  return ApplyFile(*session_, file, ApplyFileOptions{.source = "demo", .force = true}).status();
}

std::string Stage::NodeLog(size_t index) const {
  return absl::StrCat(folder_, "/", name_, "-node-", index + 1, ".log");
}

absl::Status Stage::StartNode() {
  // The URL may hold a password: it goes by the environment, not by an argument that everybody can
  // read.
  ASSIGN_OR_RETURN(Process node, Process::Start({OwnProgram(), "serve"}, NodeLog(nodes_.size()),
                                                {{"MATINS_STORE", store_url_}}));
  nodes_.push_back(std::move(node));
  return absl::OkStatus();
}

absl::Status Stage::StopNodes() {
  absl::Status status;
  for (Process& node : nodes_) node.Signal(SIGTERM);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const int code = nodes_[i].Wait();
    // One that was told to stop before it had begun to listen for that had nothing in hand.
    if (code != 0 && code != 128 + SIGTERM) {
      status.Update(absl::FailedPreconditionError(
          absl::StrCat("node ", i + 1, " ended with ", code, "; see ", NodeLog(i))));
    }
  }
  nodes_.clear();
  return status;
}

absl::Status Stage::AllAlive() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].Running()) {
      return absl::FailedPreconditionError(
          absl::StrCat("node ", i + 1, " ended by itself; see ", NodeLog(i)));
    }
  }
  return absl::OkStatus();
}

}  // namespace matins::demo
