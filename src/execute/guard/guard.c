/* The guard: one small process a run, between the node and the job's whole tree. It holds the job's
 * output and the deadlines, and trusts nobody to be awake: not the node, which may be stopped or
 * dead, and not the job. Everything below it is dead before it says that the run has ended, or
 * before it gives a dead node's lease back (I19, I21). Its only descriptor from outside is 3, the
 * socket of wire.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "output.h"
#include "pass.h"
#include "tree.h"
#include "wire.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { NODE_FD = 3, MAX_CONFIG = 64 << 20 };
static const int64_t kMs = 1000000;
static const int64_t kSlowKill = 5000000000; /* ns of killing after which it is told as not dead */

/* A pipe that the job writes to, and where what comes out of it is passed on. */
struct source {
  int fd; /* -1: closed */
  struct pass pass;
};

static struct guard {
  struct child_plan plan;
  char *return_program, *return_message, *record;
  size_t return_size;
  struct output output;
  struct source source[2]; /* standard output and error; one for both where they are the same */
  int failure_fd, child_fd, timer_fd, node_pidfd; /* -1: closed */
  int main_pid, main_alive, wait_status, tree_dead;
  int started_told, ended_told, node_dead;
  int reason, term_sent, kill_sent, stop_signal;
  int64_t asked_kill, kill_since, next_kill, next_late;
  char in[256]; /* one frame from the node, as far as it came */
  size_t in_size;
  char* out; /* frames that the socket did not take yet */
  size_t out_size, out_at, out_cap;
} g;

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- words with the node ---- */

static void queue(const void* bytes, size_t size) {
  if (g.node_dead || size == 0) return;
  if (g.out_size + size > g.out_cap) {
    g.out_cap = (g.out_size + size) * 2;
    g.out = realloc(g.out, g.out_cap);
    if (g.out == NULL)
      _exit(70); /* the end of the socket tells the node; the job dies by pdeathsig */
  }
  memcpy(g.out + g.out_size, bytes, size);
  g.out_size += size;
}

static void queue_frame(char type, const void* bytes, size_t size, size_t more) {
  uint32_t length = (uint32_t)(1 + size + more);
  queue(&length, sizeof length);
  queue(&type, 1);
  queue(bytes, size);
}

static void node_died(void) {
  g.node_dead = 1;
  g.out_size = g.out_at = 0;
}

static void flush_out(void) {
  while (g.out_at < g.out_size) {
    ssize_t n = send(NODE_FD, g.out + g.out_at, g.out_size - g.out_at, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n < 0) return node_died();
    g.out_at += (size_t)n;
  }
  g.out_at = g.out_size = 0;
}

static void take_frame(char type, const char* payload) {
  if (type == 'D' && g.reason != GUARD_LEASE_LOST) {
    memcpy(&g.plan.config.lease, payload, sizeof g.plan.config.lease);
  }
  if (type == 'S') {
    struct guard_stop stop;
    memcpy(&stop, payload, sizeof stop);
    /* One that has ended while its output still waits to be read ended by itself. */
    if (g.reason == GUARD_NONE && !g.tree_dead) {
      g.reason = stop.reason;
      g.stop_signal = stop.signal;
    }
    g.asked_kill = earlier(g.asked_kill, now_ns() + stop.grace);
  }
  if (type == 'K') {
    int32_t signal;
    memcpy(&signal, payload, sizeof signal);
    if (!g.tree_dead && signal > 0 && signal < NSIG) tree_signal(getpid(), -1, signal);
  }
}

static void read_node(void) {
  for (;;) {
    ssize_t n = recv(NODE_FD, g.in + g.in_size, sizeof g.in - g.in_size, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return node_died();
    g.in_size += (size_t)n;
    uint32_t length;
    while (g.in_size >= sizeof length) {
      memcpy(&length, g.in, sizeof length);
      if (length == 0 || length > sizeof g.in - sizeof length) return node_died();
      if (g.in_size < sizeof length + length) break;
      take_frame(g.in[sizeof length], g.in + sizeof length + 1);
      g.in_size -= sizeof length + length;
      memmove(g.in, g.in + sizeof length + length, g.in_size);
    }
  }
}

/* ---- the config, once ---- */

static void read_all(void* to, size_t size) {
  for (size_t got = 0; got < size;) {
    ssize_t n = read(NODE_FD, (char*)to + got, size - got);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(0); /* no node, and no job yet: nothing to do */
    got += (size_t)n;
  }
}

static char* next_string(char** at, size_t* size) {
  uint32_t length;
  memcpy(&length, *at, sizeof length);
  char* text = *at + sizeof length;
  *at = text + length + 1;
  if (size != NULL) *size = length;
  return text;
}

static void read_config(void) {
  uint32_t length;
  read_all(&length, sizeof length);
  if (length > MAX_CONFIG || length < 1 + sizeof(struct guard_config)) _exit(70);
  char* frame = malloc(length);
  if (frame == NULL) _exit(70);
  read_all(frame, length);
  struct guard_config* config = &g.plan.config;
  memcpy(config, frame + 1, sizeof *config);
  char* at = frame + 1 + sizeof *config;
  g.plan.dir = next_string(&at, NULL);
  g.plan.argv = calloc(config->n_argv + 1, sizeof(char*));
  g.plan.envp = calloc(config->n_env + 1, sizeof(char*));
  g.plan.groups = calloc(config->n_groups + 1, sizeof(uint32_t));
  if (g.plan.argv == NULL || g.plan.envp == NULL || g.plan.groups == NULL) _exit(70);
  for (uint32_t i = 0; i < config->n_argv; i++) g.plan.argv[i] = next_string(&at, NULL);
  for (uint32_t i = 0; i < config->n_env; i++) g.plan.envp[i] = next_string(&at, NULL);
  memcpy(g.plan.groups, at, config->n_groups * sizeof(uint32_t));
  at += config->n_groups * sizeof(uint32_t);
  g.return_program = next_string(&at, NULL);
  g.return_message = next_string(&at, &g.return_size);
  g.record = next_string(&at, NULL);
}

/* By this lock, which the kernel takes from whoever ends or becomes another program, the next node
 * knows a guard that is stopped and whose node is dead from a stranger of its number. */
static void hold_record(void) {
  if (g.record[0] != '/') return;
  int fd = open(g.record, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (fd >= 0) fcntl(fd, F_SETLK, &lock);
}

/* ---- the run ---- */

static void tell_failure(const struct child_failure* told) {
  uint32_t length = (uint32_t)strlen(told->file);
  g.started_told = g.ended_told = 1;
  queue_frame('N', &told->failure, sizeof told->failure, sizeof length + length + 1);
  queue(&length, sizeof length);
  queue(told->file, length + 1);
}

static void tell_started(void) {
  int32_t pid = g.main_pid;
  g.started_told = 1;
  queue_frame('P', &pid, sizeof pid, 0);
}

/* Where both are one file, one pipe keeps the order of what is written to them. */
static int is_one_file(int a, int b) {
  struct stat first, second;
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino && first.st_rdev == second.st_rdev;
}

/* The ends that the job gets; 0, or -1 where there are no pipes. */
static int open_sources(int* output, int* error) {
  int ends[2];
  const int pass = g.plan.config.pass_streams;
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  g.source[0].fd = ends[0];
  *output = *error = ends[1];
  pass_open(&g.source[0].pass, pass ? 1 : -1);
  if (pass && !is_one_file(1, 2)) {
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    g.source[1].fd = ends[0];
    *error = ends[1];
    pass_open(&g.source[1].pass, 2);
  }
  for (int i = 0; i < 2; i++) {
    if (g.source[i].fd >= 0) fcntl(g.source[i].fd, F_SETFL, O_NONBLOCK);
  }
  return 0;
}

static void start_program(void) {
  int output, error, failure[2];
  struct child_failure told = {{GUARD_AT_FORK, 0}, ""};
  if (output_open(&g.output, g.plan.config.head_bytes, g.plan.config.tail_bytes) == 0 &&
      open_sources(&output, &error) == 0 && pipe2(failure, O_CLOEXEC) == 0) {
    int guard_pid = getpid();
    g.main_pid = fork();
    if (g.main_pid == 0) child_run(&g.plan, output, error, failure[1], guard_pid);
  } else {
    g.main_pid = -1;
  }
  if (g.main_pid < 0) {
    told.failure.error = errno;
    g.tree_dead = 1;
    return tell_failure(&told);
  }
  g.main_alive = 1;
  if (error != output) close(error);
  close(output);
  close(failure[1]);
  g.failure_fd = failure[0];
  fcntl(g.failure_fd, F_SETFL, O_NONBLOCK);
}

static void read_failure(void) {
  if (g.failure_fd < 0) return;
  struct child_failure told;
  ssize_t n = read(g.failure_fd, &told, sizeof told);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  close(g.failure_fd);
  g.failure_fd = -1;
  if (n == (ssize_t)sizeof told) {
    tell_failure(&told);
  } else {
    tell_started();
  }
}

/* At most `rounds` reads, so that a job that never stops writing cannot keep the deadlines out.
 * Answers whether nothing is left in the pipe or on its way. */
static int read_source(struct source* source, int rounds) {
  static char bytes[sizeof source->pass.bytes];
  pass_flush(&source->pass);
  while (source->fd >= 0 && !pass_left(&source->pass) && rounds-- > 0) {
    ssize_t n = read(source->fd, bytes, sizeof bytes);
    if (n > 0) {
      output_add(&g.output, bytes, (size_t)n);
      pass_add(&source->pass, bytes, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      close(source->fd);
      source->fd = -1;
    } else {
      return 1;
    }
  }
  return source->fd < 0 && !pass_left(&source->pass);
}

static int read_output(int rounds) {
  const int first = read_source(&g.source[0], rounds);
  return read_source(&g.source[1], rounds) && first;
}

static void queue_output(void) {
  struct output* output = &g.output;
  if (output->late_size == 0) return;
  int64_t offset = output->total - (int64_t)output->late_size;
  queue_frame('O', &offset, sizeof offset, output->late_size);
  queue(output->late, output->late_size);
  output->late_size = 0;
}

/* Only into an empty queue: a node that reads slowly gets less of it, never a longer queue. */
static void tell_output(int64_t now) {
  if (g.output.late_size == 0 || g.out_size > 0 || !g.started_told || now < g.next_late) return;
  queue_output();
  g.next_late = now + 500 * kMs;
}

static void reap(void) {
  struct signalfd_siginfo drop[16];
  while (read(g.child_fd, drop, sizeof drop) > 0) {
  }
  int status, pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid != g.main_pid) continue;
    g.main_alive = 0;
    g.wait_status = status;
  }
  /* No child is left, and orphans below become children: nothing below is left. */
  if (pid < 0 && errno == ECHILD) g.tree_dead = 1;
}

static int64_t kill_at(void) {
  return earlier(g.asked_kill, earlier(g.plan.config.lease.kill, g.plan.config.time_out.kill));
}

static void judge_deadlines(int64_t now) {
  const struct guard_config* config = &g.plan.config;
  int lease_over = earlier(config->lease.stop, config->lease.kill) <= now;
  int time_over = earlier(config->time_out.stop, config->time_out.kill) <= now;
  if (g.reason != GUARD_NONE) return;
  if (lease_over && (!time_over || config->lease.stop <= config->time_out.stop)) {
    g.reason = GUARD_LEASE_LOST;
  } else if (time_over) {
    g.reason = GUARD_TIME_OUT;
  }
}

/* The rules of stop_plan.h. */
static void apply_deadlines(int64_t now) {
  judge_deadlines(now);
  if (g.node_dead) {
    if (g.reason == GUARD_NONE) g.reason = GUARD_NODE_DIED;
    g.kill_sent = 1; /* no grace: another node can start only when all here is dead */
  }
  if (g.reason == GUARD_NONE) return;
  if (kill_at() <= now) g.kill_sent = 1;
  if (!g.term_sent && !g.kill_sent) {
    tree_signal(getpid(), -1, g.stop_signal > 0 ? g.stop_signal : SIGTERM);
    tree_signal(getpid(), -1, SIGCONT); /* a stopped process sees SIGTERM only when it goes on */
  }
  g.term_sent = 1;
}

static void kill_rest(int64_t now) {
  if (g.tree_dead || (g.main_alive && !g.kill_sent) || now < g.next_kill) return;
  if (g.kill_since == 0) g.kill_since = now;
  if (g.main_alive) kill(g.main_pid, SIGKILL); /* also where /proc cannot be read */
  tree_signal(getpid(), -1, SIGKILL);
  /* Quickly at first, against programs that fork faster than one walk sees. */
  g.next_kill = now + (now - g.kill_since < kSlowKill / 5 ? kMs : 200 * kMs);
}

static void tell_end(int64_t now) {
  int given_up = g.kill_since != 0 && now - g.kill_since > kSlowKill;
  if (g.ended_told || g.node_dead || !(g.tree_dead || given_up)) return;
  read_failure();
  if (g.ended_told) return;
  if (!g.started_told) tell_started();
  /* What the pipes still hold; whoever else holds them is not waited for. Where it is passed on, it
   * is all passed on first, as long as the run has time. */
  if (!read_output(64) && g.plan.config.pass_streams && kill_at() > now && !g.kill_sent) return;
  queue_output();
  struct rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  const char* piece[2];
  size_t size[2];
  output_tail(&g.output, piece, size);
  struct guard_ended ended = {
      .total_bytes = g.output.total,
      .cpu_us = (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
                usage.ru_utime.tv_usec + usage.ru_stime.tv_usec,
      .max_rss_bytes = (int64_t)usage.ru_maxrss * 1024,
      .wait_status = g.main_alive ? SIGKILL : g.wait_status,
      .reason = g.reason,
      .tree_dead = g.tree_dead,
      .head_bytes = (uint32_t)g.output.head_size,
      .tail_bytes = (uint32_t)(size[0] + size[1]),
  };
  queue_frame('X', &ended, sizeof ended, g.output.head_size + size[0] + size[1]);
  queue(g.output.head, g.output.head_size);
  queue(piece[0], size[0]);
  queue(piece[1], size[1]);
  g.ended_told = 1;
}

/* The node is dead and so is the tree: become the process that gives the lease back. */
static void give_back(void) {
  int in[2];
  if (g.return_program[0] != '/' || pipe(in) != 0) _exit(0);
  fcntl(in[1], F_SETFL, O_NONBLOCK);
  ssize_t n = write(in[1], g.return_message, g.return_size);
  if (n != (ssize_t)g.return_size) _exit(71);
  dup2(in[0], 0);
  syscall(SYS_close_range, 3, ~0u, 0);
  for (int sig = 1; sig < NSIG; sig++) signal(sig, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  char* argv[] = {g.return_program, "guard-return", NULL};
  char* envp[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", NULL};
  execve(g.return_program, argv, envp);
  _exit(71);
}

static void set_timer(int64_t now) {
  const struct guard_config* config = &g.plan.config;
  int64_t at = GUARD_NEVER;
  if (!g.kill_sent && (g.main_alive || (g.tree_dead && !g.ended_told))) {
    at = kill_at();
    if (!g.term_sent && g.main_alive)
      at = earlier(at, earlier(config->lease.stop, config->time_out.stop));
  }
  if (!g.tree_dead && (g.kill_sent || !g.main_alive)) at = g.next_kill;
  if (g.output.late_size > 0 && g.started_told && g.out_size == 0) at = earlier(at, g.next_late);
  struct itimerspec spec = {0};
  if (at != GUARD_NEVER) {
    at = at > now ? at : now + 1;
    spec.it_value.tv_sec = at / 1000000000;
    spec.it_value.tv_nsec = at % 1000000000;
  }
  timerfd_settime(g.timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static struct pollfd source_wait(const struct source* source) {
  if (pass_left(&source->pass)) return (struct pollfd){source->pass.fd, POLLOUT, 0};
  return (struct pollfd){source->fd, POLLIN, 0};
}

static void wait_for_something(void) {
  struct pollfd fds[] = {
      {g.node_dead ? -1 : NODE_FD, (short)(POLLIN | (g.out_size > 0 ? POLLOUT : 0)), 0},
      {g.failure_fd, POLLIN, 0},
      {g.child_fd, POLLIN, 0},
      {g.timer_fd, POLLIN, 0},
      {g.node_dead ? -1 : g.node_pidfd, POLLIN, 0},
      source_wait(&g.source[0]),
      source_wait(&g.source[1]),
  };
  poll(fds, sizeof fds / sizeof fds[0], -1);
  if (fds[4].revents & POLLIN) node_died();
}

static void set_up(void) {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 0, 0, 0,
        0); /* the job, of the same user, must not read the store's URL here */
  prctl(PR_SET_NAME, "matins-guard", 0, 0, 0);
  syscall(SYS_close_range, NODE_FD + 1, ~0u, 0);
  fcntl(NODE_FD, F_SETFD, FD_CLOEXEC);
  /* Whoever signals a whole group or cgroup must not lose the one that kills the rest in order. */
  const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM};
  for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) signal(ignored[i], SIG_IGN);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_SETMASK, &child, NULL);
  g.child_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  g.timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  g.source[0].fd = g.source[1].fd = g.failure_fd = -1;
  g.asked_kill = GUARD_NEVER;
  if (g.child_fd < 0 || g.timer_fd < 0) _exit(70);
}

int main(void) {
  set_up();
  read_config();
  hold_record();
  /* The end of the socket tells of the node's death, unless somebody forked the node and so holds
   * its end too: the process itself is watched as well. */
  g.node_pidfd = (int)syscall(SYS_pidfd_open, g.plan.config.node_pid, 0);
  if (getppid() == g.plan.config.node_pid) {
    judge_deadlines(now_ns());
    if (g.reason == GUARD_NONE) {
      start_program();
    } else {
      /* The node slept over its lease: nothing is started that would have to stop by now. */
      g.wait_status = SIGKILL;
      g.tree_dead = 1;
    }
  } else {
    node_died();
    g.tree_dead = 1;
  }
  for (;;) {
    read_failure();
    if (!g.node_dead) read_node();
    read_output(16);
    reap();
    int64_t now = now_ns();
    if (!g.tree_dead) apply_deadlines(now);
    kill_rest(now);
    tell_end(now);
    tell_output(now);
    if (!g.node_dead) flush_out();
    if (g.tree_dead && g.ended_told && g.out_size == 0 && !g.node_dead) _exit(0);
    if (g.tree_dead && g.node_dead) give_back();
    set_timer(now);
    wait_for_something();
    uint64_t ticks;
    if (read(g.timer_fd, &ticks, sizeof ticks) < 0) ticks = 0;
  }
}
