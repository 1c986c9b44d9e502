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
    return Step(*done_ + 1);
  }

 private:
  absl::Status Read() {
    if (rules_.raise) {
      ASSIGN_OR_RETURN(const Answer raised,
                       sql_.Do("UPDATE guard SET fence = ? WHERE fence <= ?", {fence_, fence_}));
      // MariaDB counts what it changed; who raised before is the owner still.
      ASSIGN_OR_RETURN(const Answer stands, sql_.Do("SELECT fence FROM guard"));
      if (stands.Number(0, 0) != fence_) return Stop();
    }
    ASSIGN_OR_RETURN(const Answer read, sql_.Do("SELECT checkpoint FROM guard"));
    done_ = read.Number(0, 0);
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
    if (step == kSteps) ended_ = true;
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
    bool first = true;
    if (rules_.unique) {
      ASSIGN_OR_RETURN(const Answer before,
                       sql_.Do("SELECT count(*) FROM effect WHERE step = ?", {step}));
      first = before.Number(0, 0) == 0;
    }
    if (first) {
      RETURN_IF_ERROR(
          sql_.Do("INSERT INTO effect (step, fence) VALUES (?, ?)", {step, fence_}).status());
      ++written_;
    }
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
        "NULL);"));
  }

  // `order`: whose transaction comes, bit by bit; then each goes to its end.
  absl::StatusOr<Harms> Race(const Rules& rules, unsigned order) {
    RETURN_IF_ERROR(sql().DoAll(absl::StrCat("DELETE FROM guard; DELETE FROM effect; INSERT INTO ",
                                             "guard VALUES (1, ", kOld, ", 0);")));
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
    for (int step = 1; step <= kSteps; ++step) {
      const int64_t times = Number(absl::StrCat("SELECT count(*) FROM effect WHERE step = ", step));
      if (times > 1) harms.insert(Harm::kStepTwice);
      if (times == 0) harms.insert(Harm::kStepMissing);
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

MATINS_EACH_PLACE(Matrix);

}  // namespace
}  // namespace matins::demo
