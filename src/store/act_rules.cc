#include "store/act_rules.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/words.h"

namespace matins {

absl::Status NoJob(absl::string_view job) {
  return absl::NotFoundError(
      absl::StrCat("no job \"", job, "\"; `matins job list` shows the names"));
}

absl::Status RefuseSuspended(absl::string_view job, absl::string_view by, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("job \"", job, "\" is suspended already by ",
                                                    by, " (", why, "); resume it first"));
}

absl::Status RefuseNotSuspended(absl::string_view job) {
  return absl::FailedPreconditionError(
      absl::StrCat("job \"", job, "\" is not suspended; there is nothing to resume"));
}

absl::Status RefuseChangedMeanwhile(absl::string_view job) {
  return absl::AbortedError(
      absl::StrCat("job \"", job, "\" changed while its missed periods were counted; try again"));
}

absl::Status RefuseTakenName(absl::string_view job) {
  return absl::AlreadyExistsError(
      absl::StrCat("there is, or was, a job \"", job, "\"; choose a name that was never used"));
}

absl::Status RefuseRenameRunning(absl::string_view job, absl::string_view node) {
  return absl::FailedPreconditionError(absl::StrCat("job \"", job, "\" is running on ", node,
                                                    "; wait for it, or cancel it, then rename"));
}

absl::Status RefuseDeleteRunning(absl::string_view job, absl::string_view node) {
  return absl::FailedPreconditionError(absl::StrCat("job \"", job, "\" is running on ", node,
                                                    "; wait for it, cancel it, or use --force"));
}

absl::Status NoRowToReopen(const PeriodKey& key) {
  return absl::NotFoundError(
      absl::StrCat("no row for ", key.job, " ", key.period, "; it has not been planned"));
}

absl::Status MayReopen(const PeriodKey& key, absl::string_view status, bool held,
                       absl::string_view node, int64_t fence) {
  const std::string what = absl::StrCat(key.job, " ", key.period);
  if (status == Word(PeriodStatus::kRunning)) {
    return absl::FailedPreconditionError(absl::StrCat(what, " is running on ", node, " (run ",
                                                      fence, "); wait for it, or `matins cancel ",
                                                      fence, "`"));
  }
  if (status == Word(PeriodStatus::kPlanned) || (status == Word(PeriodStatus::kFailed) && !held)) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, " is ", status,
        " and not final; it runs at its next trigger, or now with `matins run ", key.job, "`"));
  }
  return absl::OkStatus();
}

absl::Status NoRowsToSkip(size_t missing, size_t of) {
  return absl::NotFoundError(
      absl::StrCat(missing, " of ", of, " periods have no row; plan them first"));
}

absl::Status MaySkip(const PeriodKey& key, absl::string_view status, absl::string_view node) {
  if (status == Word(PeriodStatus::kPlanned) || status == Word(PeriodStatus::kFailed)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(key.job, " ", key.period, " is ", status,
                   status == Word(PeriodStatus::kRunning) ? absl::StrCat(" on ", node) : "",
                   "; only PLANNED and FAILED periods are skipped"));
}

absl::Status NoRunAlive(int64_t fence) {
  return absl::NotFoundError(
      absl::StrCat("run ", fence, " is not alive; `matins runs` shows how it ended"));
}

absl::Status RefuseSupersededFile(absl::string_view source) {
  return absl::FailedPreconditionError(
      absl::StrCat(source,
                   ": this very content was applied before and has been superseded since; apply "
                   "the newer file, or this one again with --force"));
}

absl::Status RefuseJobsOfOthers(absl::string_view source,
                                const std::map<std::string, std::string>& others) {
  if (others.empty()) return absl::OkStatus();
  constexpr size_t kMostShown = 5;
  std::vector<std::string> shown;
  for (const auto& [job, other] : others) {
    if (shown.size() == kMostShown) break;
    shown.push_back(absl::StrCat("'", job, "' (of ", other, ")"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      source, ": ", others.size() == 1 ? "a job is" : "jobs are",
      " of another source: ", absl::StrJoin(shown, ", "), others.size() > kMostShown ? ", ..." : "",
      "; nothing was applied. Rename them here, say --source NAME if it is the same set under "
      "another file name, or `matins job apply --take-over` to make them this source's"));
}

std::map<std::string, std::string> JobsOfOthers(const ApplyRequest& request,
                                                const std::map<std::string, KnownJob>& known) {
  std::map<std::string, std::string> others;
  for (const Definition& d : request.jobs) {
    const auto was = known.find(d.job.name);
    if (request.take_over || was == known.end() || was->second.deleted) continue;
    if (was->second.source != request.source) others[d.job.name] = was->second.source;
  }
  return others;
}

std::vector<ApplyStep> StepsOf(const ApplyRequest& request,
                               const std::map<std::string, KnownJob>& known, ApplyAnswer& answer) {
  std::vector<ApplyStep> steps;
  std::set<std::string> named;
  for (const Definition& d : request.jobs) {
    named.insert(d.job.name);
    const auto was = known.find(d.job.name);
    const bool added = was == known.end() || was->second.deleted;
    ApplyStep step;
    step.job = d.job.name;
    step.definition = &d;
    if (!added && was->second.definition == d.json) {
      answer.unchanged.push_back(d.job.name);
      steps.push_back(std::move(step));
      continue;
    }
    step.kind = added ? ApplyStep::Kind::kAdd : ApplyStep::Kind::kChange;
    step.comes_back = added && was != known.end();
    step.version = was == known.end() ? 1 : was->second.version + 1;
    (added ? answer.added : answer.changed).push_back(d.job.name);
    const bool suspended = !added && was->second.suspended;
    step.suspend = d.job.suspend && !suspended;
    step.resume = !d.job.suspend && suspended && was->second.suspended_by == kByFile;
    steps.push_back(std::move(step));
  }
  for (const auto& [name, job] : known) {
    if (job.deleted || job.source != request.source || named.contains(name)) continue;
    if (!request.prune) {
      answer.missing.push_back(name);
      continue;
    }
    answer.pruned.push_back(name);
    ApplyStep step;
    step.kind = ApplyStep::Kind::kPrune;
    step.job = name;
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace matins
