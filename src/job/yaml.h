// YAML text to a tree, with its traps shut: no key twice, one document, no tags that make objects,
// no merge keys, aliases that cost nothing, at most 1 MiB and 64 levels. Scalars stay as written.
#ifndef MATINS_JOB_YAML_H_
#define MATINS_JOB_YAML_H_

#include <string>

#include "absl/strings/string_view.h"
#include "job/node.h"
#include "job/problem.h"

namespace matins {

// Nothing where the text is not YAML (the problem names line, column, reason and mend) or empty.
NodePtr ReadYaml(const std::string& file, absl::string_view text, Problems& problems);

}  // namespace matins

#endif  // MATINS_JOB_YAML_H_
