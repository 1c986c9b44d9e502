/* The job's output on its way to the node's own standard output or error. Nothing here waits: what
 * does not take it keeps the job waiting, as it would without a guard between, and nobody else. */
#ifndef MATINS_EXECUTE_GUARD_PASS_H_
#define MATINS_EXECUTE_GUARD_PASS_H_

#include <stddef.h>

enum pass_kind {
  PASS_NOWHERE, /* not asked for, or whoever read it has gone: the output is kept, and goes on */
  PASS_FILE,    /* takes all at once */
  PASS_SOCKET,
  PASS_OPENED, /* a pipe or a terminal, opened again: not waiting is ours alone, not the others' */
  PASS_POLLED, /* one that may not be opened again: little at a time, when there is room */
};

struct pass {
  int fd, kind;
  char bytes[65536]; /* what was not taken yet */
  size_t size, at;
};

/* `fd` < 0: nowhere. */
void pass_open(struct pass* pass, int fd);
/* What is to be passed on, up to sizeof bytes, only while nothing is left. */
void pass_add(struct pass* pass, const char* bytes, size_t size);
/* Passes on what is taken now. */
void pass_flush(struct pass* pass);
static inline int pass_left(const struct pass* pass) { return pass->at < pass->size; }

#endif /* MATINS_EXECUTE_GUARD_PASS_H_ */
