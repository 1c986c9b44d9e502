// One table a kind of word: the text that stands for an enumerator in job files, columns, JSON,
// flags and messages alike. Everything else asks here; nobody spells them again.
#ifndef MATINS_JOB_WORDS_H_
#define MATINS_JOB_WORDS_H_

#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "job/job.h"
#include "job/job_state.h"
#include "job/limits.h"
#include "job/values.h"

namespace matins {

// The words of `E`, in the order of its enumerators (which count from 0 without a hole).
template <typename E>
absl::Span<const absl::string_view> Words();

template <>
absl::Span<const absl::string_view> Words<PeriodStatus>();  // PLANNED RUNNING DONE FAILED SKIPPED
template <>
absl::Span<const absl::string_view> Words<BackfillState>();  // active paused cancelled
template <>
absl::Span<const absl::string_view> Words<Trigger>();  // fire return person
template <>
absl::Span<const absl::string_view> Words<Outcome::Kind>();  // done done_by_job retry failed ...
template <>
absl::Span<const absl::string_view> Words<Misfire>();  // skip latest each
template <>
absl::Span<const absl::string_view> Words<Overlap>();  // forbid allow replace queue
template <>
absl::Span<const absl::string_view> Words<Recovery>();  // rerun resume hold
template <>
absl::Span<const absl::string_view> Words<CommitBy>();  // node job
template <>
absl::Span<const absl::string_view> Words<Order>();  // none strict
template <>
absl::Span<const absl::string_view> Words<LockScope>();  // job period key
template <>
absl::Span<const absl::string_view> Words<LockProvider>();  // store redis
template <>
absl::Span<const absl::string_view> Words<Mask>();  // none hash
template <>
absl::Span<const absl::string_view> Words<LimitKind>();  // global tenant key backfill_share
template <>
absl::Span<const absl::string_view> Words<OnLeaseLost>();  // refuse abort_process
template <>
absl::Span<const absl::string_view> Words<RunKind>();  // command shell handler exec
template <>
absl::Span<const absl::string_view> Words<PeriodKind>();  // fire hour day week month
template <>
absl::Span<const absl::string_view> Words<Dialect>();  // auto vixie5 seconds6 quartz oncalendar
template <>
absl::Span<const absl::string_view> Words<GapRule>();  // next skip shift
template <>
absl::Span<const absl::string_view> Words<OverlapRule>();  // first second both

// "RUNNING" for PeriodStatus::kRunning.
template <typename E>
absl::string_view Word(E value) {
  return Words<E>()[static_cast<size_t>(value)];
}

// The exact word, case included; nothing: no such word.
template <typename E>
std::optional<E> FromWord(absl::string_view word) {
  const absl::Span<const absl::string_view> words = Words<E>();
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == word) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace matins

#endif  // MATINS_JOB_WORDS_H_
