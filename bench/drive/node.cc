// A node: a program that embeds Matins by its public header, with its default settings and the
// handler `noop`. Started by drivers alone (node_process.h), which it shares memory with.
//
//   node FD ROOM SLOTS LABELS STORE
#include <sqlite3.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "bench/drive/line.h"
#include "bench/drive/shared.h"
#include "matins/scheduler.h"

namespace matins::bench {
namespace {

void RaiseTo(std::atomic<int64_t>& most, int64_t value) {
  int64_t seen = most.load();
  while (seen < value && !most.compare_exchange_weak(seen, value)) {
  }
}

void NoteEvent(Shared& shared, const SchedulerEvent& event) {
  if (event.alarm) ++shared.alarms;
  if (event.name == "plan_stale") ++shared.plans_stale;
  if (event.name != "finished") return;
  if (event.detail != "done") ++shared.failed;
  RaiseTo(shared.last_finished_us, absl::ToUnixMicros(absl::Now()));
  ++shared.finished;
}

// How long after its due instant its first instruction comes, by the host's wall clock.
void NoteEntered(Shared& shared, int64_t room, const RunContext& run) {
  if (room > 0) {
    const absl::Duration late = absl::Now() - run.scheduled_for();
    const int64_t i = shared.latenesses++;
    if (i < room) LatenessesOf(&shared)[i] = absl::ToInt64Microseconds(late);
  }
  if (++shared.entered == 1) shared.first_entered_us = absl::ToUnixMicros(absl::Now());
}

void TellCpu(Shared& shared, double& told) {
  const double now = OwnCpuSeconds();
  shared.cpu_us += static_cast<int64_t>((now - told) * 1e6);
  ++shared.cpu_told;
  told = now;
}

Shared& Map(const std::string& fd, int64_t room) {
  int number = 0;
  if (!absl::SimpleAtoi(fd, &number)) Die("node: only drivers start this program");
  void* const memory =
      mmap(nullptr, SharedBytes(room), PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
  if (memory == MAP_FAILED) Die("node: no shared memory");
  close(number);
  return *static_cast<Shared*>(memory);
}

void Run(char** argv) {
  const int64_t room = std::atoll(argv[2]);
  Shared& shared = Map(argv[1], room);
  SchedulerOptions options;
  options.store = argv[5];
  if (const int slots = std::atoi(argv[3]); slots > 0) options.slots = slots;
  options.labels = absl::StrSplit(argv[4], ',', absl::SkipEmpty());
  // The guard of a command gives its lease back by this.
  if (const char* program = getenv("MATINS_BINARY")) options.matins_program = program;
  options.on_event = [&shared](const SchedulerEvent& event) { NoteEvent(shared, event); };
  auto scheduler = Scheduler::Open(options);
  DieUnlessOk(scheduler.status(), "a node");
  const auto noop = [&shared, room](RunContext& run) {
    NoteEntered(shared, room, run);
    return absl::OkStatus();
  };
  DieUnlessOk((*scheduler)->AddHandler("noop", noop), "a handler");
  ++shared.ready;
  while (!shared.go) absl::SleepFor(absl::Microseconds(200));
  double told = OwnCpuSeconds();
  DieUnlessOk((*scheduler)->Start(), "starting a node");
  // No clock of its own here: a node that has nothing to do is asleep.
  char word = 0;
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, &word, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) break;
    if (got == 1 && word == kTellCpu) TellCpu(shared, told);
  }
  TellCpu(shared, told);
  DieUnlessOk((*scheduler)->Drain(absl::Seconds(10)), "draining a node");
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS,
                 0);  // as docs/embedding.md says, and as `matins serve` does
  if (argc != 6) matins::bench::Die("node: only drivers start this program");
  matins::bench::Run(argv);
}
