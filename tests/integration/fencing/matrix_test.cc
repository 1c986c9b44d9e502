// What a business database has to do so that an owner who wakes up too late does no harm: each
// weaker rule is seen to let something through, in some order in which two owners' transactions may
// come; ours lets nothing through, in any. The same matrix as the models' (model/biz.pml).
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tests/integration/fencing/place.h"

namespace matins::demo {
namespace {

constexpr int kSteps = 2;
constexpr int64_t kOld = 10, kNew = 11;

// What it does.
struct Rules {
  const char* name;
  bool fence = false;       // refuses lower fences
  bool raise = false;       // a new owner raises the fence, and commits that, before it reads
  bool unique = false;      // a unique key for each step
  bool checkpoint = false;  // the checkpoint only goes one step on, beside the effect
  // How far the work is stands in the scheduler's row, in a transaction of its own after the
  // effect's; the scheduler hears its present owner alone.
  bool scheduler = false;
};

// The effects in the scheduler's own database, in the transaction that writes DONE.
struct SameTransaction {
  bool asks_whose = false;  // DONE only by the fence that stands there
};

// What is let through.
enum class Harm {
  kStepTwice,
  kFenceBack,    // the token that stands there is an older one's again
  kLateWrite,    // an old owner writes after a newer one has read
  kStepMissing,  // both are at their end, and a step is not there
};
using Harms = std::set<Harm>;

// One owner, a transaction at a time.
class Owner {
 public:
  Owner(Sql& sql, const Rules& rules, int64_t fence) : sql_(sql), rules_(rules), fence_(fence) {}

  bool ended() const { return ended_; }
  bool has_read() const { return done_.has_value(); }
  int written() const { return written_; }

  absl::Status Move() {
    if (!done_) return Read();
    if (told_ < *done_) return Tell();
    return *done_ < kSteps ? Step(*done_ + 1) : Stop();
  }

 private:
  // A newer owner's first transaction makes the scheduler's row its own.
  absl::Status Read() {
    if (rules_.scheduler) {
      RETURN_IF_ERROR(
          sql_.Do("UPDATE scheduler SET fence = ? WHERE fence < ?", {fence_, fence_}).status());
    }
    if (rules_.raise) {
      ASSIGN_OR_RETURN(const Answer raised,
                       sql_.Do("UPDATE guard SET fence = ? WHERE fence <= ?", {fence_, fence_}));
      // MariaDB counts what it changed; who raised before is the owner still.
      ASSIGN_OR_RETURN(const Answer stands, sql_.Do("SELECT fence FROM guard"));
      if (stands.Number(0, 0) != fence_) return Stop();
    }
    ASSIGN_OR_RETURN(
        const Answer read,
        sql_.Do(absl::StrCat("SELECT checkpoint FROM ", rules_.scheduler ? "scheduler" : "guard")));
    done_ = told_ = read.Number(0, 0);
    if (*done_ >= kSteps) return Stop();
    return absl::OkStatus();
  }

  // `matins checkpoint`.
  absl::Status Tell() {
    if (rules_.scheduler) {
      ASSIGN_OR_RETURN(
          const Answer heard,
          sql_.Do("UPDATE scheduler SET checkpoint = ? WHERE fence = ?", {*done_, fence_}));
      if (heard.changed == 0) return Stop();
    }
    told_ = *done_;
    if (*done_ >= kSteps) return Stop();
    return absl::OkStatus();
  }

  absl::Status Step(int64_t step) {
    RETURN_IF_ERROR(sql_.Begin());
    const absl::StatusOr<bool> written = Write(step);
    if (!written.ok() || !*written) {
      sql_.Rollback();
      return written.status();
    }
    RETURN_IF_ERROR(sql_.Commit());
    done_ = step;
    if (!rules_.scheduler) return Tell();
    return absl::OkStatus();
  }

  // False: refused.
  absl::StatusOr<bool> Write(int64_t step) {
    // The guard's row is locked first, so that two steps come one after the other.
    ASSIGN_OR_RETURN(const Answer there, sql_.Do(LockText()));
    if (rules_.fence && there.Number(0, 0) > fence_) {
      RETURN_IF_ERROR(Stop());
      return false;
    }
    RETURN_IF_ERROR(sql_.Do("UPDATE guard SET fence = ?", {fence_}).status());
    if (rules_.checkpoint && there.Number(0, 1) != step - 1) {
      done_.reset();  // somebody has moved it: look again
      return false;
    }
    RETURN_IF_ERROR(sql_.Do("UPDATE guard SET checkpoint = ?", {step}).status());
    if (rules_.unique) {
      ASSIGN_OR_RETURN(const Answer before,
                       sql_.Do("SELECT count(*) FROM effect WHERE step = ?", {step}));
      if (before.Number(0, 0) > 0) {
        done_ = step;  // it is there: nothing is written
        return false;
      }
    }
    RETURN_IF_ERROR(
        sql_.Do("INSERT INTO effect (step, fence) VALUES (?, ?)", {step, fence_}).status());
    ++written_;
    return true;
  }

  std::string LockText() const {
    return absl::StrCat("SELECT fence, checkpoint FROM guard",
                        sql_.dialect() == FenceDialect::kSqlite ? "" : " FOR UPDATE");
  }

  absl::Status Stop() {
    ended_ = true;
    return absl::OkStatus();
  }

  Sql& sql_;
  const Rules rules_;
  const int64_t fence_;
  std::optional<int64_t> done_;
  int64_t told_ = 0;  // of that, what the scheduler has accepted
  bool ended_ = false;
  int written_ = 0;
};

class Matrix : public Place {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Place::SetUp());
    ASSERT_OK(sql().DoAll(
        "CREATE TABLE guard (id BIGINT PRIMARY KEY, fence BIGINT NOT NULL, "
        "checkpoint BIGINT NOT NULL); CREATE TABLE effect (step BIGINT NOT NULL, fence BIGINT NOT "
        "NULL); CREATE TABLE scheduler (id BIGINT PRIMARY KEY, fence BIGINT NOT NULL, checkpoint "
        "BIGINT NOT NULL, done BIGINT NOT NULL);"));
  }

  // `order`: whose transaction comes, bit by bit; then each goes to its end.
  absl::StatusOr<Harms> Race(const Rules& rules, unsigned order) {
    RETURN_IF_ERROR(Clear());
    Owner old_owner(sql(), rules, kOld), new_owner(sql(), rules, kNew);
    RETURN_IF_ERROR(old_owner.Move());  // it has read, and sleeps
    Harms harms;
    int64_t stands = kOld;
    for (int turn = 0; turn < 40 && !(old_owner.ended() && new_owner.ended());
         ++turn, order >>= 1) {
      const bool newer = (order & 1) != 0;
      Owner& mover = (newer ? new_owner : old_owner).ended() ? (newer ? old_owner : new_owner)
                                                             : (newer ? new_owner : old_owner);
      const int written = old_owner.written();
      const bool read = new_owner.has_read();
      RETURN_IF_ERROR(mover.Move());
      if (read && old_owner.written() > written) harms.insert(Harm::kLateWrite);
      const int64_t now = Number("SELECT fence FROM guard");
      if (now < stands) harms.insert(Harm::kFenceBack);
      stands = now;
    }
    CountSteps(harms);
    return harms;
  }

  absl::Status Clear() {
    return sql().DoAll(
        absl::StrCat("DELETE FROM guard; DELETE FROM effect; DELETE FROM scheduler; ",
                     "INSERT INTO guard VALUES (1, ", kOld, ", 0); INSERT INTO ",
                     "scheduler VALUES (1, ", kOld, ", 0, 0);"));
  }

  void CountSteps(Harms& harms) {
    for (int step = 1; step <= kSteps; ++step) {
      const int64_t times = Number(absl::StrCat("SELECT count(*) FROM effect WHERE step = ", step));
      if (times > 1) harms.insert(Harm::kStepTwice);
      if (times == 0) harms.insert(Harm::kStepMissing);
    }
  }

  // Effects and DONE together; true: it was let in.
  absl::StatusOr<bool> Finish(const SameTransaction& rules, int64_t fence) {
    RETURN_IF_ERROR(sql().Begin());
    for (int step = 1; step <= kSteps; ++step) {
      RETURN_IF_ERROR(
          sql().Do("INSERT INTO effect (step, fence) VALUES (?, ?)", {step, fence}).status());
    }
    const char* const whose = rules.asks_whose ? "fence = ?" : "? > 0";
    ASSIGN_OR_RETURN(
        const Answer done,
        sql().Do(absl::StrCat("UPDATE scheduler SET done = 1 WHERE done = 0 AND ", whose),
                 {fence}));
    if (done.changed == 0) {
      sql().Rollback();
      return false;
    }
    RETURN_IF_ERROR(sql().Commit());
    return true;
  }

  // The old owner's transaction comes before the new one's claim, between that and the new one's
  // own, or last.
  absl::StatusOr<Harms> AnyPlace(const SameTransaction& rules) {
    Harms harms;
    for (int place = 0; place < 3; ++place) {
      RETURN_IF_ERROR(Clear());
      const auto old_owner = [&](bool late) -> absl::Status {
        ASSIGN_OR_RETURN(const bool written, Finish(rules, kOld));
        if (written && late) harms.insert(Harm::kLateWrite);
        return absl::OkStatus();
      };
      if (place == 0) RETURN_IF_ERROR(old_owner(false));
      ASSIGN_OR_RETURN(const Answer claimed,
                       sql().Do("UPDATE scheduler SET fence = ? WHERE done = 0", {kNew}));
      if (place == 1) RETURN_IF_ERROR(old_owner(true));
      if (claimed.changed > 0) RETURN_IF_ERROR(Finish(rules, kNew).status());
      if (place == 2) RETURN_IF_ERROR(old_owner(true));
      CountSteps(harms);
    }
    return harms;
  }

  Harms AnyOrder(const Rules& rules) {
    Harms all;
    for (unsigned order = 0; order < 64; ++order) {
      const absl::StatusOr<Harms> harms = Race(rules, order);
      EXPECT_TRUE(harms.ok()) << rules.name << ": " << harms.status();
      if (!harms.ok()) break;
      all.insert(harms->begin(), harms->end());
    }
    return all;
  }
};

TEST_P(Matrix, EachWeakerRuleLetsSomethingThroughAndOursNothing) {
  const Harm twice = Harm::kStepTwice, back = Harm::kFenceBack, late = Harm::kLateWrite;
  EXPECT_EQ(AnyOrder({.name = "nothing"}), (Harms{twice, back, late}));
  EXPECT_EQ(AnyOrder({.name = "refuse lower fences", .fence = true}), (Harms{twice, late}));
  EXPECT_EQ(AnyOrder({.name = "a unique key", .unique = true}), (Harms{back, late}));
  EXPECT_EQ(AnyOrder({.name = "a checkpoint", .checkpoint = true}), (Harms{back, late}));
  EXPECT_EQ(AnyOrder({.name = "refuse, and a checkpoint", .fence = true, .checkpoint = true}),
            (Harms{late}));
  EXPECT_EQ(AnyOrder({.name = "refuse, and raise first", .fence = true, .raise = true}), Harms{});
  EXPECT_EQ(AnyOrder({.name = "ours", .fence = true, .raise = true, .checkpoint = true}), Harms{});
}

// Where only the scheduler knows how far the work is, a crash between a step and its checkpoint
// does the step again, whatever fences the business database has: a unique key is needed as well.
TEST_P(Matrix, ACheckpointOfTheSchedulersNeedsAUniqueKeyToo) {
  const Harm twice = Harm::kStepTwice, back = Harm::kFenceBack, late = Harm::kLateWrite;
  EXPECT_EQ(AnyOrder({.name = "nothing", .scheduler = true}), (Harms{twice, back, late}));
  EXPECT_EQ(
      AnyOrder(
          {.name = "refuse, and raise first", .fence = true, .raise = true, .scheduler = true}),
      (Harms{twice}));
  EXPECT_EQ(AnyOrder({.name = "a unique key", .unique = true, .scheduler = true}), (Harms{late}));
  EXPECT_EQ(AnyOrder({.name = "refuse, raise first, and a unique key",
                      .fence = true,
                      .raise = true,
                      .unique = true,
                      .scheduler = true}),
            Harms{});
}

TEST_P(Matrix, TheTransactionThatWritesDoneAsksWhoseThePeriodIs) {
  ASSERT_OK_AND_ASSIGN(const Harms by_anybody, AnyPlace({.asks_whose = false}));
  EXPECT_EQ(by_anybody, (Harms{Harm::kLateWrite}));
  ASSERT_OK_AND_ASSIGN(const Harms by_its_owner, AnyPlace({.asks_whose = true}));
  EXPECT_EQ(by_its_owner, Harms{});
}

MATINS_EACH_PLACE(Matrix);

}  // namespace
}  // namespace matins::demo
