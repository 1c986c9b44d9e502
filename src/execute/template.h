// {{name}} in the words of a command and in the values of variables.
//
// A template is expanded into one word of an argument vector, which no shell reads; whatever bytes
// a value has, they arrive as they are. In a `shell` text templates are refused: a value spliced
// into a program is a program (an injected one, some day). There each value is in a variable of the
// environment, and the author quotes it as any other: "$MATINS_BIZ_DATE".
#ifndef MATINS_EXECUTE_TEMPLATE_H_
#define MATINS_EXECUTE_TEMPLATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "execute/runner.h"

namespace matins {

// Names: job tenant period biz_date window_start window_end scheduled_for generation attempt run_id
// fence backfill checkpoint, and param.NAME. Blanks inside the braces do not count. "\{{" is "{{".
// Errors (InvalidArgument, with the place and the mend): an unknown name, braces that do not close,
// a business date where the period has none.
absl::StatusOr<std::string> ExpandTemplate(absl::string_view text, const RunValues& values,
                                           int64_t fence);

// Refuses a shell text with a template in it, and names the variable to use instead.
absl::Status CheckShellText(absl::string_view text);

// "run_id" -> "MATINS_RUN_ID", "param.x" -> "MATINS_PARAM_x".
std::string VariableOfTemplate(absl::string_view name);

}  // namespace matins

#endif  // MATINS_EXECUTE_TEMPLATE_H_
