#include "store/limit_rules.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/fault.h"
#include "job/sha256.h"
#include "job/words.h"
#include "store/rules.h"

namespace matins {
namespace {

// Whether `rule` has no room; the name is that of the tenant or key, which a pattern's is not.
std::optional<Full> FullAt(const LimitRule* rule, absl::string_view name, int64_t most,
                           int64_t taken) {
  if (rule == nullptr || taken < most) return std::nullopt;
  return Full{absl::StrCat("limits.", Word(rule->kind), name.empty() ? "" : " ", name, " ",
                           MostText(rule->kind, rule->most)),
              LimitName(rule->kind, name)};
}

int64_t At(const std::map<std::string, int64_t>& counts, const std::string& name) {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

LimitBook::LimitBook(std::vector<LimitRule> rules) : rules_(std::move(rules)) {
  std::sort(rules_.begin(), rules_.end());
}

const LimitRule* LimitBook::Find(LimitKind kind, absl::string_view name) const {
  const LimitRule* nearest = nullptr;
  for (const LimitRule& rule : rules_) {
    if (rule.kind != kind) continue;
    if (rule.name == name) return &rule;
    absl::string_view prefix = rule.name;
    if (!absl::ConsumeSuffix(&prefix, "*") || !absl::StartsWith(name, prefix)) continue;
    if (nearest == nullptr || rule.name.size() > nearest->name.size()) nearest = &rule;
  }
  return nearest;
}

std::optional<int64_t> LimitBook::MostBackfills() const {
  const LimitRule* share = Find(LimitKind::kBackfillShare, "");
  const LimitRule* global = Find(LimitKind::kGlobal, "");
  if (share == nullptr || global == nullptr) return std::nullopt;
  return std::max<int64_t>(1, int64_t{global->most} * share->most / 100);
}

std::vector<const LimitRule*> LimitBook::Concerning(const std::vector<LimitClaim>& claims) const {
  std::set<const LimitRule*> rules;  // of one vector: in its order, which is that of the names
  for (const LimitClaim& claim : claims) {
    rules.insert(Find(LimitKind::kGlobal, ""));
    if (!claim.tenant.empty()) rules.insert(Find(LimitKind::kTenant, claim.tenant));
    if (!claim.key.empty()) rules.insert(Find(LimitKind::kKey, claim.key));
    if (claim.backfill) rules.insert(Find(LimitKind::kBackfillShare, ""));
  }
  rules.erase(nullptr);
  return {rules.begin(), rules.end()};
}

void LimitCounts::Add(const LimitClaim& claim, int64_t runs) {
  alive += runs;
  if (claim.backfill) backfills += runs;
  if (!claim.tenant.empty()) tenants[claim.tenant] += runs;
  if (!claim.key.empty()) keys[claim.key] += runs;
}

std::optional<Full> FirstFull(const LimitBook& book, const LimitCounts& counts,
                              const LimitClaim& claim) {
  if (book.empty() || IsMutant(Mutant::kNoLimit)) return std::nullopt;
  if (!claim.tenant.empty() && !IsMutant(Mutant::kNoTenantLimit)) {
    const LimitRule* rule = book.Find(LimitKind::kTenant, claim.tenant);
    if (auto full = FullAt(rule, claim.tenant, rule == nullptr ? 0 : rule->most,
                           At(counts.tenants, claim.tenant))) {
      return full;
    }
  }
  if (!claim.key.empty() && !IsMutant(Mutant::kNoKeyLimit)) {
    const LimitRule* rule = book.Find(LimitKind::kKey, claim.key);
    if (auto full =
            FullAt(rule, claim.key, rule == nullptr ? 0 : rule->most, At(counts.keys, claim.key))) {
      return full;
    }
  }
  if (const auto most = book.MostBackfills(); claim.backfill && most) {
    if (auto full = FullAt(book.Find(LimitKind::kBackfillShare, ""), "", *most, counts.backfills)) {
      return full;
    }
  }
  const LimitRule* global = book.Find(LimitKind::kGlobal, "");
  return FullAt(global, "", global == nullptr ? 0 : global->most, counts.alive);
}

absl::StatusOr<LimitChange> ChangeLimits(const std::vector<LimitRow>& rows,
                                         const std::optional<std::string>& said,
                                         const SetLimitsRequest& request) {
  const auto key = [](const LimitRule& rule) { return std::make_pair(rule.kind, rule.name); };
  LimitChange change;
  std::vector<std::string> words;
  for (const LimitRule& rule : request.set) {
    words.push_back(absl::StrCat(LimitName(rule), " ", MostText(rule.kind, rule.most)));
  }
  change.said = absl::StrJoin(words, "\n");
  std::map<std::pair<LimitKind, std::string>, LimitRule> after;
  for (const LimitRow& row : rows) after[key(row.rule)] = row.rule;
  const bool stale = !request.source.empty() && said == change.said;
  if (!stale) {
    const auto remove = [&](const LimitRule& rule) {
      if (after.erase(key(rule)) > 0) change.gone.push_back(rule);
    };
    for (const LimitRule& rule : request.clear) remove(rule);
    for (const LimitRow& row : rows) {
      if (!request.source.empty() && row.source == request.source) remove(row.rule);
    }
    for (const LimitRule& rule : request.set) {
      remove(rule);
      after[key(rule)] = rule;
      change.put.push_back(rule);
    }
  }
  change.any = !after.empty();
  if (after.contains({LimitKind::kBackfillShare, ""}) &&
      !after.contains({LimitKind::kGlobal, ""})) {
    return absl::FailedPreconditionError(
        "limits: backfill_share is a share of the global limit, and there would be none; set "
        "global too, or clear backfill_share with it");
  }
  std::vector<std::string> cleared;
  for (const LimitRule& rule : change.gone) {
    if (!after.contains(key(rule))) cleared.push_back(JsonString(LimitName(rule)));
  }
  for (std::string& word : words) word = JsonString(word);
  change.detail = absl::StrCat("{\"set\":[", absl::StrJoin(words, ","), "],\"cleared\":[",
                               absl::StrJoin(cleared, ","), "]}");
  return change;
}

std::string LimitsSaidKey(absl::string_view source) {
  // Of one length, whatever the file is called.
  return absl::StrCat("limits/", Sha256Hex(source).substr(0, 40));
}

int64_t NextLimitsNumber(int64_t last, bool any) {
  const int64_t next = (last < 0 ? -last : last) + 1;
  return any ? next : -next;
}

LimitsView ViewOf(std::vector<LimitRow> rules, std::vector<LimitUse> uses) {
  LimitsView view;
  view.rules = std::move(rules);
  std::sort(view.rules.begin(), view.rules.end(),
            [](const LimitRow& a, const LimitRow& b) { return a.rule < b.rule; });
  for (const LimitRow& row : view.rules) {
    const LimitRule& rule = row.rule;
    const bool there = std::any_of(uses.begin(), uses.end(), [&](const LimitUse& use) {
      return use.kind == rule.kind && use.name == rule.name;
    });
    if (!there && !absl::EndsWith(rule.name, "*")) uses.push_back({rule.kind, rule.name, 0, 0, 0});
  }
  std::sort(uses.begin(), uses.end(), [](const LimitUse& a, const LimitUse& b) {
    return std::tie(a.kind, a.name) < std::tie(b.kind, b.name);
  });
  view.uses = std::move(uses);
  return view;
}

}  // namespace matins
