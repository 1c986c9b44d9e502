#include "send/carry.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/sealed_memory.h"
#include "base/status.h"
#include "send/child.h"

// MATINS_CARRIER_FILE is the carrier as the build has just linked it.
asm(".section .rodata\n"
    ".balign 16\n"
    ".global matins_carrier_begin\n"
    ".global matins_carrier_end\n"
    "matins_carrier_begin:\n"
    ".incbin \"" MATINS_CARRIER_FILE
    "\"\n"
    "matins_carrier_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const char matins_carrier_begin[];
extern const char matins_carrier_end[];
extern char** environ;
}

namespace matins {
namespace {

// libcurl's own for its time-out.
constexpr int kTimedOut = 28;
// Beyond libcurl's time-out: for a resolver that does not come back.
constexpr absl::Duration kGrace = absl::Seconds(2);

absl::string_view CarrierBytes() {
  return absl::string_view(matins_carrier_begin,
                           static_cast<size_t>(matins_carrier_end - matins_carrier_begin));
}

// The carrier in memory; or, where the system starts nothing from that, in a file that has no name
// any more. -1: neither.
int InMemory() { return SealedMemory("matins-carrier", CarrierBytes()); }

int InFile() {
  const char* folder = std::getenv("TMPDIR");
  std::string path = absl::StrCat(folder == nullptr ? "/tmp" : folder, "/matins-carrier-XXXXXX");
  const int writing = mkostemp(path.data(), O_CLOEXEC);
  if (writing < 0) return -1;
  const bool written = WriteAll(writing, CarrierBytes()) && fchmod(writing, 0700) == 0;
  close(writing);
  // One that is open for writing is not started.
  const int fd = written ? open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1;
  unlink(path.c_str());
  return fd;
}

absl::StatusOr<ChildEnd> Start(const ChildCall& wanted) {
  static std::mutex mutex;
  static int in_memory = -2, in_file = -2;  // -2: not tried yet
  ChildCall call = wanted;
  for (const auto& [kept, make] :
       {std::pair<int*, int (*)()>{&in_memory, &InMemory}, {&in_file, &InFile}}) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (*kept == -2) *kept = make();
      call.program = *kept;
    }
    if (call.program < 0) continue;
    ASSIGN_OR_RETURN(ChildEnd end, RunChild(call));
    const bool started = !(WIFEXITED(end.status) && WEXITSTATUS(end.status) == kNoProgram);
    if (started) return end;
  }
  return absl::FailedPreconditionError(
      "the program that sends messages cannot be started: is libcurl (libcurl4) installed, and may "
      "programs be started from memory, or from TMPDIR?");
}

}  // namespace

absl::StatusOr<CarrierReply> Carry(const CarrierItems& items, absl::Duration timeout,
                                   const std::atomic<bool>& stop) {
  ChildCall call;
  call.words = {"matins-carrier"};
  // Proxies and authorities are said there.
  for (char** variable = environ; *variable != nullptr; ++variable) {
    call.variables.emplace_back(*variable);
  }
  absl::StrAppend(&call.input, "timeout_ms ",
                  absl::StrCat(absl::ToInt64Milliseconds(timeout)).size(), "\n",
                  absl::ToInt64Milliseconds(timeout), "\n");
  for (const auto& [name, value] : items) {
    absl::StrAppend(&call.input, name, " ", value.size(), "\n", value, "\n");
  }
  call.timeout = timeout + kGrace;
  call.output = true;
  call.stop = &stop;
  ASSIGN_OR_RETURN(const ChildEnd end, Start(call));
  const std::vector<std::string> lines = absl::StrSplit(end.output, absl::MaxSplits('\n', 3));
  int code = 0;
  CarrierReply reply;
  if (end.status != 0 || lines.size() < 4 || !absl::SimpleAtoi(lines[0], &code) ||
      !absl::SimpleAtoi(lines[1], &reply.status)) {
    return absl::UnavailableError("the program that sends messages did not say what came of it");
  }
  reply.body = lines[3];
  if (code == 0) return reply;
  std::string why = lines[2];
  if (reply.status != 0) absl::StrAppend(&why, " (", reply.status, ")");
  if (code == kTimedOut) return absl::DeadlineExceededError(why);
  return absl::UnavailableError(why);
}

}  // namespace matins
