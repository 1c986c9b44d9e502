#include "job/problem.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace matins {

std::string Mark::Text() const {
  std::string text = file == nullptr ? "" : *file;
  if (line > 0) absl::StrAppend(&text, text.empty() ? "line " : ":", line);
  if (line > 0 && column > 0) absl::StrAppend(&text, ":", column);
  return text;
}

std::string Problem::Text() const {
  const std::string where = at.Text();
  return absl::StrCat(where, where.empty() ? "" : ": ", warning ? "warning: " : "", what,
                      mend.empty() ? "" : "; ", mend);
}

void Problems::Error(const Mark& at, absl::string_view what, absl::string_view mend) {
  ++errors_;
  Add({false, at, std::string(what), std::string(mend)});
}

void Problems::Warn(const Mark& at, absl::string_view what, absl::string_view mend) {
  Add({true, at, std::string(what), std::string(mend)});
}

void Problems::Add(Problem problem) {
  if (all_.size() >= kMost) return;
  const auto same = [&](const Problem& other) {
    return other.warning == problem.warning && other.at.line == problem.at.line &&
           other.at.column == problem.at.column && other.what == problem.what &&
           other.at.Text() == problem.at.Text();
  };
  if (std::none_of(all_.begin(), all_.end(), same)) all_.push_back(std::move(problem));
}

absl::Status Problems::ToStatus() const {
  if (errors_ == 0) return absl::OkStatus();
  std::string text;
  for (const Problem& problem : all_) {
    if (!problem.warning) absl::StrAppend(&text, text.empty() ? "" : "\n", problem.Text());
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace matins
