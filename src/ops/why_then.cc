#include "ops/why_then.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/time.h"
#include "job/json.h"
#include "job/key_template.h"
#include "job/words.h"
#include "store/limit_rules.h"

namespace matins {
namespace {

constexpr absl::Time kPast = absl::InfinitePast();
// A node counts as alive so long after its last sign of life.
constexpr absl::Duration kSignOfLife = absl::Seconds(30);
constexpr size_t kMostNamed = 3;
constexpr int kMostRuns = 100'000;

std::string Named(const RunRow& run) {
  return absl::StrCat(run.key.job, " ", run.key.period, " (run ", run.fence, ")");
}

absl::Time EndOf(const RunRow& run) {
  return run.finished_at == kPast ? absl::InfiniteFuture() : run.finished_at;
}

bool Overlaps(const RunRow& run, const Wait& wait) {
  return run.claimed_at != kPast && run.claimed_at < wait.to && EndOf(run) > wait.from;
}

std::string FromTo(absl::Time from, absl::Time to) {
  return absl::StrCat("from ", FormatInstant(from), " to ", FormatInstant(to));
}

// The key that a run of this period counts against; empty: none. A run's row keeps no date: where
// the period's key is none, a template with the date in it is told apart by the key alone.
std::string LimitKeyOf(const Job& job, const std::string& period,
                       std::optional<absl::CivilDay> biz_date) {
  if (job.limit_key.empty()) return "";
  const absl::CivilDay day = biz_date.value_or(ParseDay(period).value_or(absl::CivilDay()));
  return ExpandKey(job.limit_key, {job.name, job.tenant, period, day}).value_or(job.limit_key);
}

std::string FewOf(std::vector<std::string> names) {
  const size_t all = names.size();
  if (all > kMostNamed) names.resize(kMostNamed);
  return absl::StrCat(absl::StrJoin(names, ", "),
                      all > kMostNamed ? absl::StrCat(" and ", all - kMostNamed, " more") : "");
}

class Then {
 public:
  Then(Session& session, const Planned& planned, const PeriodRow& row, const Wait& wait)
      : session_(session), planned_(planned), row_(row), wait_(wait) {}

  absl::Status Read() {
    RunFilter filter;
    filter.limit = kMostRuns;
    ASSIGN_OR_RETURN(std::vector<RunRow> runs, session_.acts().ReadRuns(filter));
    for (RunRow& run : runs) {
      if (Overlaps(run, wait_) && run.key != row_.key) runs_.push_back(std::move(run));
    }
    std::sort(runs_.begin(), runs_.end(),
              [](const RunRow& a, const RunRow& b) { return a.claimed_at < b.claimed_at; });
    return absl::OkStatus();
  }

  void Suspended(const AuditFacts& facts) {
    for (const auto& [job, spans] : facts.suspended) {
      for (const Suspension& span : spans) {
        if (span.to <= wait_.from || wait_.to <= span.from) continue;
        Say(absl::StrCat(
            "then: suspended since ", FormatInstant(span.from), " by ", span.by, ": ", span.why,
            span.to == absl::InfiniteFuture() ? std::string(", and still")
                                              : absl::StrCat(", until ", FormatInstant(span.to))));
      }
    }
  }

  // Nodes that have been silent for a week are forgotten.
  void Nodes(absl::Span<const NodeRow> nodes, absl::Time now) {
    if (now - wait_.from > absl::Hours(24 * 7)) return;
    const std::vector<std::string>& labels = planned_.current().job.nodes;
    for (const Wait& gap : WithoutNode(nodes, labels, wait_)) {
      if (gap.to - gap.from < kToldWait) continue;
      Say(absl::StrCat(
          "then: no node ",
          labels.empty() ? "" : absl::StrCat("with ", absl::StrJoin(labels, ", "), " "),
          "was alive ", FromTo(gap.from, gap.to)));
    }
  }

  absl::Status Order() {
    if (planned_.current().job.backfill.order != matins::Order::kStrict) return absl::OkStatus();
    RowFilter filter;
    filter.job = row_.key.job;
    filter.to = row_.biz_date;
    filter.limit = 1000;
    filter.newest_first = true;
    ASSIGN_OR_RETURN(const std::vector<PeriodRow> rows, session_.acts().ReadRows(filter));
    const PeriodRow* last = nullptr;  // the one that was settled last: until then it was blocked
    for (const PeriodRow& other : rows) {
      if (other.due >= row_.due) continue;
      const bool open =
          other.status != PeriodStatus::kDone && other.status != PeriodStatus::kSkipped;
      const absl::Time settled = open ? absl::InfiniteFuture() : other.finished_at;
      if (settled <= wait_.from) continue;
      if (last == nullptr || Settled(*last) < settled) last = &other;
    }
    if (last == nullptr) return absl::OkStatus();
    RunFilter runs;
    runs.job = row_.key.job;
    runs.period = last->key.period;
    ASSIGN_OR_RETURN(const std::vector<RunRow> attempts, session_.acts().ReadRuns(runs));
    std::string failed;
    for (const RunRow& attempt : attempts) {
      if (attempt.status != "FAILED" || EndOf(attempt) > wait_.to) continue;
      failed = absl::StrCat(", which had FAILED(", attempt.reason, ") at ",
                            FormatInstant(attempt.finished_at));
      break;
    }
    const absl::Time settled = Settled(*last);
    Say(absl::StrCat(
        "then: blocked in strict order by ", last->key.period, failed,
        settled == absl::InfiniteFuture()
            ? absl::StrCat(", and is ", Word(last->status), " still")
            : absl::StrCat(", until it was ", Word(last->status), " at ", FormatInstant(settled))));
    return absl::OkStatus();
  }

  absl::Status After() {
    for (const matins::After& after : planned_.current().job.after) {
      RowFilter filter;
      filter.job = after.job;
      filter.from = filter.to = row_.biz_date;
      ASSIGN_OR_RETURN(const std::vector<PeriodRow> rows, session_.acts().ReadRows(filter));
      for (const PeriodRow& other : rows) {
        if (other.status != PeriodStatus::kDone || other.finished_at <= wait_.from) continue;
        Say(absl::StrCat("then: it waited for job ", after.job, " ", other.key.period, ", DONE at ",
                         FormatInstant(other.finished_at)));
      }
    }
    return absl::OkStatus();
  }

  void Locks() {
    const Job& job = planned_.current().job;
    if (job.overlap == Overlap::kAllow || job.lock.scope != LockScope::kJob) return;
    std::vector<std::string> holders;
    for (const RunRow& run : runs_) {
      if (run.key.job != row_.key.job) continue;
      holders.push_back(absl::StrCat(
          run.key.period, ", run ", run.fence, " on ", run.node, " from ",
          FormatInstant(run.claimed_at),
          run.finished_at == kPast ? "" : absl::StrCat(" to ", FormatInstant(run.finished_at))));
    }
    if (!holders.empty()) {
      Say(absl::StrCat("then: the job's lock was held by ", FewOf(std::move(holders))));
    }
  }

  absl::Status Limits() {
    const Job& job = planned_.current().job;
    if (job.limit) {
      std::vector<CountedRun> own;
      for (const RunRow& run : runs_) {
        if (run.key.job == row_.key.job) own.push_back({run, "", ""});
      }
      // A limit of one name, counted like the store's.
      for (std::string& text :
           FullThen(std::vector<LimitRow>{{{LimitKind::kGlobal, "", *job.limit}, "", "", kPast}},
                    {}, own, wait_)) {
        const size_t colon = text.find(" was full");
        Say(absl::StrCat("then: limits.job ", *job.limit, text.substr(colon)));
      }
    }
    ASSIGN_OR_RETURN(const LimitsView limits, session_.acts().ReadLimits());
    if (limits.rules.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::vector<JobRow> jobs, session_.acts().ReadJobs(""));
    std::map<std::string, Job> known;
    for (const JobRow& one : jobs) {
      const absl::StatusOr<Job> words = JobFromJson(one.definition);
      if (words.ok()) known[one.name] = *words;
    }
    std::vector<CountedRun> counted;
    for (const RunRow& run : runs_) {
      const auto of = known.find(run.key.job);
      if (of == known.end()) {
        counted.push_back({run, "", ""});
      } else {
        counted.push_back(
            {run, of->second.tenant, LimitKeyOf(of->second, run.key.period, std::nullopt)});
      }
    }
    CountedRun mine;
    mine.run.backfill = row_.backfill;
    mine.tenant = job.tenant;
    mine.key = LimitKeyOf(job, row_.key.period, row_.biz_date);
    for (const std::string& text : FullThen(limits.rules, mine, counted, wait_)) {
      Say(absl::StrCat("then: ", text));
    }
    return absl::OkStatus();
  }

  // The store tells of itself by what was written when it, or the first node, was back.
  absl::Status Store() {
    ASSIGN_OR_RETURN(const std::vector<EventRow> events, session_.acts().ReadEvents("", 10'000));
    for (auto it = events.rbegin(); it != events.rend(); ++it) {
      if (it->at < wait_.from || wait_.to < it->at) continue;
      if (it->kind == "return") {
        Say(absl::StrCat("then: the first node was back at ", FormatInstant(it->at),
                         it->who.empty() ? "" : absl::StrCat(" (", it->who, ")"),
                         ", after a time in which none, or not the store, had answered"));
      } else if (it->kind == "clock" || it->kind == "limits") {
        Say(absl::StrCat("then: ", it->kind == "clock" ? "the clock" : "limits were changed",
                         " at ", FormatInstant(it->at), " by ", it->who,
                         it->why.empty() ? "" : ": ", it->why));
      }
    }
    return absl::OkStatus();
  }

  void Deadline() {
    if (row_.status != PeriodStatus::kSkipped || row_.reason != reason::kMissed) return;
    const absl::Duration deadline = planned_.current().job.start_deadline;
    Say(absl::StrCat("its start deadline passed at ", FormatInstant(row_.due + deadline), ", ",
                     DurationText(deadline), " after it was due"));
  }

  std::vector<std::string> Take() { return std::move(truths_); }

 private:
  void Say(std::string truth) { truths_.push_back(std::move(truth)); }

  static absl::Time Settled(const PeriodRow& row) {
    const bool open = row.status != PeriodStatus::kDone && row.status != PeriodStatus::kSkipped;
    return open ? absl::InfiniteFuture() : row.finished_at;
  }

  Session& session_;
  const Planned& planned_;
  const PeriodRow& row_;
  const Wait wait_;
  std::vector<RunRow> runs_;  // of other periods, alive during the wait
  std::vector<std::string> truths_;
};

}  // namespace

std::optional<Wait> WaitOf(const PeriodRow& row, absl::Span<const RunRow> runs, absl::Time now) {
  if (row.due == kPast) return std::nullopt;
  Wait wait{row.due, now};
  const RunRow* first = nullptr;
  for (const RunRow& run : runs) {
    if (run.generation == row.generation && run.claimed_at != kPast) first = &run;
  }
  if (first != nullptr) {
    wait.to = first->claimed_at;
    if (first->planned_at != kPast) wait.from = std::max(wait.from, first->planned_at);
  } else if (row.status == PeriodStatus::kSkipped || row.status == PeriodStatus::kFailed) {
    wait.to = row.finished_at;
  } else if (row.status != PeriodStatus::kPlanned) {
    return std::nullopt;  // its attempts are no longer kept
  }
  if (wait.to == kPast || wait.to - wait.from < kToldWait) return std::nullopt;
  return wait;
}

absl::StatusOr<std::vector<std::string>> StoodInTheWay(Session& session, const Planned& planned,
                                                       const AuditFacts& facts,
                                                       absl::Span<const NodeRow> nodes,
                                                       const PeriodRow& row, const Wait& wait) {
  Then then(session, planned, row, wait);
  RETURN_IF_ERROR(then.Read());
  then.Deadline();
  then.Suspended(facts);
  then.Nodes(nodes, facts.now);
  RETURN_IF_ERROR(then.Order());
  RETURN_IF_ERROR(then.After());
  then.Locks();
  RETURN_IF_ERROR(then.Limits());
  RETURN_IF_ERROR(then.Store());
  return then.Take();
}

std::vector<Wait> WithoutNode(absl::Span<const NodeRow> nodes,
                              const std::vector<std::string>& labels, const Wait& wait) {
  std::vector<Wait> alive;
  for (const NodeRow& node : nodes) {
    const bool fits = std::all_of(labels.begin(), labels.end(), [&](const std::string& label) {
      return std::find(node.labels.begin(), node.labels.end(), label) != node.labels.end();
    });
    if (fits)
      alive.push_back(
          {node.started_at, node.seen_at + (node.left ? absl::ZeroDuration() : kSignOfLife)});
  }
  std::sort(alive.begin(), alive.end(),
            [](const Wait& a, const Wait& b) { return a.from < b.from; });
  std::vector<Wait> gaps;
  absl::Time covered = wait.from;
  for (const Wait& one : alive) {
    if (one.to <= covered) continue;
    if (one.from >= wait.to) break;
    if (one.from > covered) gaps.push_back({covered, one.from});
    covered = one.to;
  }
  if (covered < wait.to) gaps.push_back({covered, wait.to});
  return gaps;
}

std::vector<std::string> FullThen(absl::Span<const LimitRow> rules, const CountedRun& mine,
                                  absl::Span<const CountedRun> runs, const Wait& wait) {
  std::vector<LimitRule> plain;
  for (const LimitRow& row : rules) plain.push_back(row.rule);
  const LimitBook book(plain);
  std::vector<std::string> texts;
  const auto look = [&](const LimitRule* rule, absl::string_view name, int64_t most,
                        const std::function<bool(const CountedRun&)>& counts) {
    if (rule == nullptr) return;
    // Rooms are taken when a run is claimed: full at one of those instants, or from the beginning.
    std::vector<absl::Time> instants = {wait.from};
    for (const CountedRun& one : runs) {
      if (one.run.claimed_at > wait.from && one.run.claimed_at < wait.to) {
        instants.push_back(one.run.claimed_at);
      }
    }
    std::sort(instants.begin(), instants.end());
    for (const absl::Time t : instants) {
      std::vector<std::string> alive;
      for (const CountedRun& one : runs) {
        if (counts(one) && one.run.claimed_at <= t && t < EndOf(one.run)) {
          alive.push_back(Named(one.run));
        }
      }
      if (static_cast<int64_t>(alive.size()) < most) continue;
      texts.push_back(absl::StrCat("limits.", Word(rule->kind), name.empty() ? "" : " ", name, " ",
                                   most, " was full at ", FormatInstant(t), ": ",
                                   FewOf(std::move(alive))));
      return;
    }
  };
  const LimitRule* tenant =
      mine.tenant.empty() ? nullptr : book.Find(LimitKind::kTenant, mine.tenant);
  look(tenant, mine.tenant, tenant == nullptr ? 0 : tenant->most,
       [&](const CountedRun& one) { return one.tenant == mine.tenant; });
  const LimitRule* key = mine.key.empty() ? nullptr : book.Find(LimitKind::kKey, mine.key);
  look(key, mine.key, key == nullptr ? 0 : key->most,
       [&](const CountedRun& one) { return one.key == mine.key; });
  const LimitRule* global = book.Find(LimitKind::kGlobal, "");
  look(global, "", global == nullptr ? 0 : global->most, [](const CountedRun&) { return true; });
  if (const auto most = book.MostBackfills(); mine.run.backfill && most) {
    look(book.Find(LimitKind::kBackfillShare, ""), "", *most,
         [](const CountedRun& one) { return one.run.backfill; });
  }
  return texts;
}

absl::StatusOr<std::vector<std::string>> FullLimits(Session& session, const Job& job,
                                                    const PeriodRow& row) {
  ASSIGN_OR_RETURN(const LimitsView view, session.acts().ReadLimits());
  std::vector<LimitRule> rules;
  for (const LimitRow& one : view.rules) rules.push_back(one.rule);
  const LimitBook book(rules);
  LimitCounts taken;
  for (const LimitUse& use : view.uses) {
    if (use.kind == LimitKind::kGlobal) taken.alive = use.taken;
    if (use.kind == LimitKind::kBackfillShare) taken.backfills = use.taken;
    if (use.kind == LimitKind::kTenant) taken.tenants[use.name] = use.taken;
    if (use.kind == LimitKind::kKey) taken.keys[use.name] = use.taken;
  }
  std::vector<std::string> texts;
  const auto full = FirstFull(
      book, taken, {job.tenant, LimitKeyOf(job, row.key.period, row.biz_date), row.backfill});
  if (full)
    texts.push_back(absl::StrCat(full->blocker, " is full; `matins limits` shows its uses"));
  return texts;
}

}  // namespace matins
