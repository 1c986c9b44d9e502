#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { FAILURE_FD = 3 };

static void fail(int stage, const char* file) __attribute__((noreturn));
static void fail(int stage, const char* file) {
  struct child_failure told = {{stage, errno}, ""};
  strncpy(told.file, file, sizeof told.file - 1);
  ssize_t n = write(FAILURE_FD, &told, sizeof told);
  (void)n;
  _exit(errno == ENOENT ? 127 : 126);
}

/* By the bare call: the C library keeps two numbers for itself and would not reset those. All zero
 * is the default handler, no flags and an empty mask. */
static void reset_handlers(void) {
  const unsigned long zero[8] = {0};
  for (int sig = 1; sig < NSIG; sig++) syscall(SYS_rt_sigaction, sig, zero, NULL, NSIG / 8);
}

static void reset_signals(void) {
  /* Ignored signals would be inherited: a node that ignores SIGPIPE must not make `yes | head` hang
   * the job. */
  reset_handlers();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

static void place_files(const struct child_plan* plan, int output, int error, int failure) {
  /* Everything goes first above the numbers that are to be filled, so that none is overwritten. */
  output = fcntl(output, F_DUPFD_CLOEXEC, 10);
  error = fcntl(error, F_DUPFD_CLOEXEC, 10);
  failure = fcntl(failure, F_DUPFD_CLOEXEC, 10);
  if (!plan->config.pass_streams) dup2(open("/dev/null", O_RDONLY), 0);
  dup2(output, 1);
  dup2(error, 2);
  dup3(failure, FAILURE_FD, O_CLOEXEC);
  if (syscall(SYS_close_range, FAILURE_FD + 1, ~0u, 0) != 0) {
    for (int fd = FAILURE_FD + 1; fd < 65536; fd++) close(fd);
  }
}

static void become_user(const struct child_plan* plan) {
  const struct guard_config* config = &plan->config;
  /* Groups while still privileged, then gid, and uid last: after it there is no way back. */
  if (setgroups(config->n_groups, (const gid_t*)plan->groups) != 0 ||
      setresgid(config->gid, config->gid, config->gid) != 0 ||
      setresuid(config->uid, config->uid, config->uid) != 0 ||
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    fail(GUARD_AT_USER, "");
  }
  if (config->uid == 0) return;
  uid_t ruid, euid, suid;
  if (getresuid(&ruid, &euid, &suid) != 0 || ruid != config->uid || euid != config->uid ||
      suid != config->uid || setuid(0) == 0 || seteuid(0) == 0) {
    errno = EPERM;
    fail(GUARD_AT_USER, "");
  }
}

static const char* path_of(char** envp) {
  for (; *envp != NULL; envp++) {
    if (strncmp(*envp, "PATH=", 5) == 0) return *envp + 5;
  }
  return "/usr/bin:/bin";
}

/* As execvp, but along the job's PATH, and without handing a file that is no program to a shell. */
static void exec_program(const struct child_plan* plan) {
  const char* name = plan->argv[0];
  if (strchr(name, '/') != NULL) {
    execve(name, plan->argv, plan->envp);
    return;
  }
  static char file[4096];
  int seen = ENOENT;
  for (const char* at = path_of(plan->envp); at != NULL && *name != 0;) {
    const char* end = strchrnul(at, ':');
    size_t length = (size_t)(end - at);
    if (length > 0 && length + strlen(name) + 2 <= sizeof file) {
      memcpy(file, at, length);
      file[length] = '/';
      strcpy(file + length + 1, name);
      execve(file, plan->argv, plan->envp);
      /* One that is there but may not be run tells more than the ones that are not there. */
      if (errno != ENOENT && errno != ENOTDIR) seen = errno;
    }
    at = *end == ':' ? end + 1 : NULL;
  }
  errno = seen;
}

void child_run(const struct child_plan* plan, int output, int error, int failure, int guard_pid) {
  setsid();
  reset_signals();
  if (plan->config.change_user) {
    /* So that the job can open /dev/stdout, which is this pipe. */
    if (fchown(output, plan->config.uid, plan->config.gid) != 0) errno = 0;
    if (fchown(error, plan->config.uid, plan->config.gid) != 0) errno = 0;
  }
  place_files(plan, output, error, failure);
  umask((mode_t)plan->config.umask);
  if (plan->config.change_user) become_user(plan);
  /* After the change of user, which would clear it. */
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != guard_pid) _exit(126);
  if (chdir(plan->dir) != 0) fail(GUARD_AT_DIR, plan->dir);
  exec_program(plan);
  fail(GUARD_AT_EXEC, plan->argv[0]);
}
