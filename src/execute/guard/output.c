#define _GNU_SOURCE
#include "output.h"

#include <string.h>
#include <sys/mman.h>

static char* take(size_t size) {
  if (size == 0) return NULL;
  char* at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

int output_open(struct output* output, size_t head_cap, size_t tail_cap) {
  memset(output, 0, sizeof *output);
  output->head_cap = head_cap;
  output->tail_cap = tail_cap;
  output->head = take(head_cap);
  output->tail = take(tail_cap);
  return (head_cap > 0 && output->head == NULL) || (tail_cap > 0 && output->tail == NULL) ? -1 : 0;
}

static void add_late(struct output* output, const char* bytes, size_t size) {
  if (size > OUTPUT_LATE_MAX) {
    bytes += size - OUTPUT_LATE_MAX;
    size = OUTPUT_LATE_MAX;
  }
  size_t over = output->late_size + size;
  over = over > OUTPUT_LATE_MAX ? over - OUTPUT_LATE_MAX : 0;
  memmove(output->late, output->late + over, output->late_size - over);
  output->late_size -= over;
  memcpy(output->late + output->late_size, bytes, size);
  output->late_size += size;
}

static void add_tail(struct output* output, const char* bytes, size_t size) {
  if (size > output->tail_cap) {
    bytes += size - output->tail_cap;
    size = output->tail_cap;
  }
  while (size > 0) {
    size_t room = output->tail_cap - output->tail_next;
    size_t part = size < room ? size : room;
    memcpy(output->tail + output->tail_next, bytes, part);
    output->tail_next = (output->tail_next + part) % output->tail_cap;
    output->tail_size += part;
    if (output->tail_size > output->tail_cap) output->tail_size = output->tail_cap;
    bytes += part;
    size -= part;
  }
}

void output_add(struct output* output, const char* bytes, size_t size) {
  output->total += (int64_t)size;
  add_late(output, bytes, size);
  size_t room = output->head_cap - output->head_size;
  size_t part = size < room ? size : room;
  memcpy(output->head + output->head_size, bytes, part);
  output->head_size += part;
  add_tail(output, bytes + part, size - part);
}

void output_tail(const struct output* output, const char* piece[2], size_t size[2]) {
  piece[0] = piece[1] = output->tail;
  size[0] = output->tail_size;
  size[1] = 0;
  if (output->tail_size < output->tail_cap || output->tail_cap == 0) return;
  piece[0] = output->tail + output->tail_next;
  size[0] = output->tail_cap - output->tail_next;
  size[1] = output->tail_next;
}
