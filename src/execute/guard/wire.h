/* What node and guard say to each other over their socket pair. Both are of one build and on one
 * machine: integers are native. A frame is u32 length of what follows, u8 type, payload. A string
 * is u32 length, its bytes, and a NUL that the length does not count.
 *
 * To the guard:
 *   C  config, first and once: struct guard_config, then the strings
 *      dir, n_argv words, n_env variables, n_groups of u32, return program, return message, record
 *   D  struct guard_deadline: the lease moves
 *   S  struct guard_stop
 *   K  i32 signal: to the whole tree, and nothing else changes
 * From the guard:
 *   P  i32 pid: the program was started
 *   N  struct guard_failure, then the string of the file it is about: nothing was started; last
 *   O  i64 offset, bytes: output as it comes
 *   X  struct guard_ended, head, tail: the run has ended; last
 * The guard takes the end of the socket as the death of the node. */
#ifndef MATINS_EXECUTE_GUARD_WIRE_H_
#define MATINS_EXECUTE_GUARD_WIRE_H_

#include <stdint.h>

#define GUARD_NEVER INT64_MAX

enum guard_reason { /* as enum StopReason in runner.h */
                    GUARD_NONE,
                    GUARD_LEASE_LOST,
                    GUARD_TIME_OUT,
                    GUARD_CANCELLED,
                    GUARD_REPLACED,
                    GUARD_SHUTDOWN,
                    GUARD_NODE_DIED,
};

enum guard_stage { GUARD_AT_FORK, GUARD_AT_USER, GUARD_AT_DIR, GUARD_AT_EXEC };

struct guard_deadline { /* ns of CLOCK_BOOTTIME, or GUARD_NEVER */
  int64_t stop;
  int64_t kill;
};

struct guard_config {
  struct guard_deadline lease;
  struct guard_deadline time_out;
  int32_t node_pid;
  int32_t umask;
  uint32_t head_bytes;
  uint32_t tail_bytes;
  int32_t change_user; /* 0: uid, gid and groups stay, and n_groups is 0 */
  uint32_t uid;
  uint32_t gid;
  uint32_t n_argv;
  uint32_t n_env;
  uint32_t n_groups;
  int32_t pass_streams; /* the program has the guard's own standard input, and what it writes goes
                           to the guard's standard output and error as well */
};

struct guard_stop {
  int64_t grace; /* ns */
  int32_t reason;
  int32_t signal; /* what asks it to end; 0: SIGTERM */
};

struct guard_failure {
  int32_t stage;
  int32_t error; /* errno; EPERM at GUARD_AT_USER: the old user could be regained */
};

struct guard_ended {
  int64_t total_bytes;
  int64_t cpu_us;
  int64_t max_rss_bytes;
  int32_t wait_status; /* as waitpid(2) gives it */
  int32_t reason;
  int32_t tree_dead;
  uint32_t head_bytes;
  uint32_t tail_bytes;
  int32_t unused;
};

#endif /* MATINS_EXECUTE_GUARD_WIRE_H_ */
