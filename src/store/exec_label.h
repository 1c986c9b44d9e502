#ifndef MATINS_STORE_EXEC_LABEL_H_
#define MATINS_STORE_EXEC_LABEL_H_

namespace matins {

// The label of a call of `matins exec` or `matins lock`, which is a node of its job alone: what is
// planned for `run: { exec: true }` waits for such a call. No label that a person gives looks like
// it.
inline constexpr char kExecLabel[] = "run:exec";

}  // namespace matins

#endif  // MATINS_STORE_EXEC_LABEL_H_
