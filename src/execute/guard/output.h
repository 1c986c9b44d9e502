/* The job's output: the first bytes, the last bytes, and what came lately; memory is bounded, the
 * output is not. */
#ifndef MATINS_EXECUTE_GUARD_OUTPUT_H_
#define MATINS_EXECUTE_GUARD_OUTPUT_H_

#include <stddef.h>
#include <stdint.h>

enum { OUTPUT_LATE_MAX = 16384 };

struct output {
  int64_t total;
  char* head;
  size_t head_size, head_cap;
  char* tail; /* a ring */
  size_t tail_size, tail_cap, tail_next;
  char late[OUTPUT_LATE_MAX]; /* the newest bytes since output_take_late */
  size_t late_size;
};

/* Memory is taken from the kernel page by page as it fills. 0, or -1 when there is none. */
int output_open(struct output* output, size_t head_cap, size_t tail_cap);
void output_add(struct output* output, const char* bytes, size_t size);
/* The ring in order: two pieces, of which the second may be empty. */
void output_tail(const struct output* output, const char* piece[2], size_t size[2]);

#endif /* MATINS_EXECUTE_GUARD_OUTPUT_H_ */
