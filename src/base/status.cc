#include "base/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace matins {
namespace {
constexpr absl::string_view kInDoubtUrl = "matins/in-doubt";
}  // namespace

absl::Status InDoubtError(absl::string_view message) {
  absl::Status status = absl::UnknownError(message);
  status.SetPayload(kInDoubtUrl, absl::Cord("1"));
  return status;
}

bool IsInDoubt(const absl::Status& status) { return status.GetPayload(kInDoubtUrl).has_value(); }

bool MayBeAskedAgain(const absl::Status& status) {
  return absl::IsUnavailable(status) || IsInDoubt(status);
}

absl::Status BadInput(absl::string_view where, absl::string_view what, absl::string_view mend) {
  std::string text(where);
  if (!where.empty()) absl::StrAppend(&text, ": ");
  absl::StrAppend(&text, what);
  if (!mend.empty()) absl::StrAppend(&text, "; ", mend);
  return absl::InvalidArgumentError(text);
}

absl::Status Annotate(const absl::Status& status, absl::string_view prefix) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(prefix, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace matins
