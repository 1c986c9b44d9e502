/* The way from the guard to the program: a process with nothing of ours but its standard files. */
#ifndef MATINS_EXECUTE_GUARD_CHILD_H_
#define MATINS_EXECUTE_GUARD_CHILD_H_

#include "wire.h"

struct child_plan {
  struct guard_config config;
  char* dir;
  char** argv; /* n_argv, NULL */
  char** envp; /* n_env, NULL */
  uint32_t* groups;
};

/* What comes down the failure pipe when the program could not be started; small enough that a pipe
 * takes it whole or not at all. */
struct child_failure {
  struct guard_failure failure;
  char file[4000]; /* the file, or directory, that it is about */
};

/* In the child after fork: never returns. `output` becomes stdout, `error` (it may be the same)
 * stderr; stdin is /dev/null, or with pass_streams stays; and `failure` (close-on-exec) carries a
 * struct child_failure when something does not work. */
void child_run(const struct child_plan* plan, int output, int error, int failure, int guard_pid)
    __attribute__((noreturn));

#endif /* MATINS_EXECUTE_GUARD_CHILD_H_ */
