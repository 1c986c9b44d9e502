#include "ops/twice.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/time.h"

namespace matins {
namespace {

constexpr absl::Time kPast = absl::InfinitePast();

bool IsDone(const AttemptStory& attempt) { return attempt.run.status == "DONE"; }

// It ran, and what it did before it ended was not taken for the period's result.
bool MayHaveActed(const AttemptStory& attempt) {
  return !IsDone(attempt) && attempt.run.claimed_at != kPast &&
         attempt.run.reason != "start_failed";
}

std::string Named(const AttemptStory& attempt) { return absl::StrCat("run ", attempt.run.fence); }

// An attempt that was claimed while the lease of an older one was alive, and the older one.
struct Overlapping {
  const AttemptStory* older = nullptr;
  const AttemptStory* newer = nullptr;
};

class Judge {
 public:
  explicit Judge(const PeriodStory& story) : story_(story) {}

  TwiceAnswer Run() {
    for (const AttemptStory& attempt : story_.attempts) {
      if (IsDone(attempt)) done_[attempt.run.generation].push_back(&attempt);
      if (MayHaveActed(attempt)) lost_.push_back(&attempt);
    }
    for (const auto& [generation, runs] : done_) {
      if (runs.size() > 1 && doubled_.empty()) doubled_ = runs;
    }
    Key();
    Lease();
    Fence();
    Commit();
    Verdict();
    return std::move(answer_);
  }

 private:
  void Add(const char* name, Guard::State state, std::string evidence) {
    answer_.guards.push_back({name, state, std::move(evidence)});
  }

  void Lease() {
    for (size_t i = 1; i < story_.attempts.size(); ++i) {
      const AttemptStory& older = story_.attempts[i - 1];
      const AttemptStory& newer = story_.attempts[i];
      const bool ended =
          older.run.finished_at != kPast && older.run.finished_at <= newer.run.claimed_at;
      if (!ended) overlap_ = {&older, &newer};
    }
    if (overlap_.newer != nullptr) {
      return Add("lease", Guard::State::kMissing,
                 absl::StrCat(Named(*overlap_.newer), " was claimed at ",
                              FormatInstant(overlap_.newer->run.claimed_at), ", before ",
                              Named(*overlap_.older), " had ended or was taken back"));
    }
    if (story_.attempts.size() < 2) {
      return Add("lease", Guard::State::kHeld, "there was one owner at most");
    }
    Add("lease", Guard::State::kHeld,
        "no run was claimed before the one before it had ended or was taken back");
  }

  void Fence() {
    std::vector<std::string> fences, refused;
    for (const AttemptStory& attempt : story_.attempts) {
      fences.push_back(absl::StrCat(attempt.run.fence));
      for (const AttemptRefusal& refusal : attempt.refusals) {
        refused.push_back(
            absl::StrCat(Named(attempt), " at ", FormatInstant(refusal.at),
                         refusal.why.empty() ? "" : absl::StrCat(" (", refusal.why, ")")));
      }
    }
    for (const AttemptStory* one : doubled_) {
      for (const AttemptStory* other : doubled_) {
        const bool later = one->run.finished_at > other->run.finished_at;
        if (!later || one->run.fence > other->run.fence) continue;
        return Add("fence", Guard::State::kMissing,
                   absl::StrCat("the older fence ", one->run.fence, " was accepted at ",
                                FormatInstant(one->run.finished_at), ", after ", other->run.fence));
      }
    }
    std::string evidence = fences.empty() ? "nothing was ever claimed"
                                          : absl::StrCat("in the store each claim's was higher: ",
                                                         absl::StrJoin(fences, " < "));
    if (!refused.empty()) {
      absl::StrAppend(&evidence, "; refused: ", absl::StrJoin(refused, ", "));
    }
    Add("fence", Guard::State::kHeld, std::move(evidence));
  }

  void Commit() {
    if (!doubled_.empty()) {
      std::vector<std::string> runs;
      for (const AttemptStory* run : doubled_) runs.push_back(Named(*run));
      return Add("commit", Guard::State::kMissing,
                 absl::StrCat("generation ", doubled_[0]->run.generation, " has ", doubled_.size(),
                              " accepted results: ", absl::StrJoin(runs, ", ")));
    }
    const std::string accepted = done_.empty() ? "no result was accepted"
                                               : "each generation has one accepted result at most";
    if (story_.commit == CommitBy::kJob) {
      return Add("commit", Guard::State::kHeld,
                 absl::StrCat(accepted, "; with `commit: job` an effect is there exactly with it"));
    }
    if (lost_.empty()) return Add("commit", Guard::State::kHeld, accepted);
    std::vector<std::string> runs;
    for (const AttemptStory* run : lost_) {
      runs.push_back(absl::StrCat(Named(*run), " ", run->run.status));
    }
    Add("commit", Guard::State::kMissing,
        absl::StrCat(accepted, ", but with `commit: node` a run's effects are there before it: ",
                     absl::StrJoin(runs, ", "), " may have had some"));
  }

  void Key() {
    const std::string key = IdempotencyKey(story_.key);
    const bool needed = !doubled_.empty() || done_.size() > 1 || !lost_.empty();
    Add("key", needed ? Guard::State::kUnknown : Guard::State::kHeld,
        absl::StrCat(
            key, "/STEP is the same for every attempt and generation",
            needed ? "; whether those who got the effects looked at it, they alone know" : ""));
  }

  void Verdict() {
    if (!doubled_.empty()) {
      answer_.verdict = TwiceAnswer::Verdict::kDoubled;
      for (const char* name : {"lease", "fence", "commit"}) {
        const auto guard = std::find_if(answer_.guards.begin(), answer_.guards.end(),
                                        [&](const Guard& g) { return g.name == name; });
        if (guard->state != Guard::State::kMissing || !answer_.missing.empty()) continue;
        answer_.missing = name;
      }
      answer_.says = absl::StrCat("DOUBLED: generation ", doubled_[0]->run.generation, " has ",
                                  doubled_.size(), " accepted results; what was missing is the ",
                                  answer_.missing, answer_.missing == "commit" ? " condition" : "");
      return;
    }
    if (done_.size() > 1) {
      answer_.verdict = TwiceAnswer::Verdict::kAgain;
      answer_.missing = "key";
      answer_.says =
          absl::StrCat("computed ", done_.size(),
                       " times, once in each generation, because it was opened again: ", OpenedBy(),
                       "; what keeps its effects single then is the key, which has no generation");
      return;
    }
    const bool safe = story_.commit == CommitBy::kJob;
    if (!lost_.empty() && !safe) {
      answer_.verdict = TwiceAnswer::Verdict::kPossible;
      answer_.missing = "commit";
      answer_.says = absl::StrCat(
          done_.empty() ? "no result was accepted" : "one result was accepted", ", and ",
          lost_.size(),
          " attempt(s) may have had effects without one; what would have kept these "
          "out is the commit condition: the fence in the job's own transaction (docs/fencing.md), "
          "or the key at those who got them");
      return;
    }
    answer_.says = absl::StrCat("not doubled: ", story_.attempts.size(), " attempt(s), ",
                                done_.empty() ? "no" : "one", " accepted result");
  }

  std::string OpenedBy() const {
    std::vector<std::string> acts;
    for (const EventRow& event : story_.reopened) {
      acts.push_back(absl::StrCat("generation ", event.generation, " by ", event.who, " at ",
                                  FormatInstant(event.at), event.why.empty() ? "" : ": ",
                                  event.why));
    }
    return acts.empty() ? "the acts are no longer kept" : absl::StrJoin(acts, "; ");
  }

  const PeriodStory& story_;
  std::map<int, std::vector<const AttemptStory*>> done_;  // by generation
  std::vector<const AttemptStory*> doubled_;              // of the first generation that has two
  std::vector<const AttemptStory*> lost_;
  Overlapping overlap_;
  TwiceAnswer answer_;
};

}  // namespace

TwiceAnswer JudgeTwice(const PeriodStory& story) { return Judge(story).Run(); }

std::string IdempotencyKey(const PeriodKey& key) { return absl::StrCat(key.job, "/", key.period); }

absl::string_view Word(Guard::State state) {
  switch (state) {
    case Guard::State::kHeld:
      return "held";
    case Guard::State::kMissing:
      return "missing";
    case Guard::State::kUnknown:
      return "not known";
  }
  return "";
}

absl::string_view Word(TwiceAnswer::Verdict verdict) {
  switch (verdict) {
    case TwiceAnswer::Verdict::kSingle:
      return "single";
    case TwiceAnswer::Verdict::kPossible:
      return "possible";
    case TwiceAnswer::Verdict::kAgain:
      return "again";
    case TwiceAnswer::Verdict::kDoubled:
      return "doubled";
  }
  return "";
}

}  // namespace matins
