// Keys of locks that are made for each period: "settle-{{biz_date}}".
#ifndef MATINS_JOB_KEY_TEMPLATE_H_
#define MATINS_JOB_KEY_TEMPLATE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "job/job.h"

namespace matins {

// The names: job, tenant, period, biz_date; a date takes a form after a colon, made of %Y %m %d %j
// %V %G (ISO week and its year) %u (1 is Monday) and %%: {{biz_date:%Y%m%d}}. Single braces mean
// the same. InvalidArgument with the reason and the mend.
absl::Status CheckKey(absl::string_view key_template);

struct KeyValues {
  absl::string_view job;
  absl::string_view tenant;
  absl::string_view period;
  absl::CivilDay biz_date;
};
// The template must have passed CheckKey; at most 200 bytes come out (longer ones keep their first
// 160 and a hash of the whole, so that different keys stay different).
absl::StatusOr<std::string> ExpandKey(absl::string_view key_template, const KeyValues& values);

// The key as it is stored, logged and shown: with kHash a hash of it in its place ("hash/" and 32
// hex digits), the same wherever it is made, so that equal keys stay equal. Without a secret: who
// can guess a key can check the guess.
std::string MaskKey(Mask mask, absl::string_view key);

// The lock of one period of a job, as it stands in Intent::lock_key: "job/NAME" for scope job,
// empty for scope period (the period's own row is the lock), the expanded template, masked where
// the job says so, for a key.
absl::StatusOr<std::string> LockKeyOf(const Job& job, absl::string_view period,
                                      absl::CivilDay biz_date);

// Whether the template has {name} in it.
bool KeyNames(absl::string_view key_template, absl::string_view name);

// Whether the key differs from period to period, so that two of them can run at once.
bool KeyNamesPeriod(absl::string_view key_template);

// Refuses {{names}} that no run has, braces that do not close. For words of a command and values of
// variables, which the runner expands; param.NAME is known only at the start, and passes.
absl::Status CheckRunTemplate(absl::string_view text);
// Refuses those same names in a shell text, where a value would become a program, and says which
// variable to use. Braces with other names in them are the author's own affair.
absl::Status CheckShellTemplate(absl::string_view text);

}  // namespace matins

#endif  // MATINS_JOB_KEY_TEMPLATE_H_
