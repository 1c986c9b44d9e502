#include "execute/run_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "execute/environment.h"
#include "execute/give_back.h"
#include "execute/template.h"

namespace matins {
namespace {

constexpr int64_t kMaxKept = 16 << 20;

struct Who {
  UserAccount account;
  bool become = false;  // not as whom this process runs already
};

absl::StatusOr<Who> ResolveUser(const RunRequest& request, const UserLookup& lookup) {
  Who who;
  if (request.user.empty()) {
    who.account = OwnUser();
    return who;
  }
  ASSIGN_OR_RETURN(who.account, lookup(request.user));
  RETURN_IF_ERROR(CheckCanBecome(who.account));
  who.become = geteuid() == 0 && who.account.uid != 0;
  return who;
}

absl::StatusOr<std::vector<std::string>> Words(const RunRequest& request) {
  std::vector<std::string> words;
  if (!request.program.shell.empty()) {
    RETURN_IF_ERROR(CheckShellText(request.program.shell));
    words = {"/bin/sh", "-c", request.program.shell};
  } else {
    for (const std::string& word : request.program.argv) {
      ASSIGN_OR_RETURN(std::string expanded, ExpandTemplate(word, request.values, request.run));
      words.push_back(std::move(expanded));
    }
  }
  if (words.empty() || words[0].empty()) {
    return BadInput("run.command", "the program's name is empty", "write what is to be run");
  }
  for (const std::string& word : words) {
    if (word.find('\0') != std::string::npos) {
      return BadInput("run.command", "a word has a NUL byte in it",
                      "an argument cannot hold one; hand it over in a file");
    }
  }
  return words;
}

absl::Status WriteCheckpoint(const std::string& path, const RunValues& values, const Who& who) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  absl::string_view rest = values.checkpoint;
  bool ok = fd >= 0 && (!who.become || fchown(fd, who.account.uid, who.account.gid) == 0);
  while (ok && !rest.empty()) {
    const ssize_t n = write(fd, rest.data(), rest.size());
    ok = n > 0 || (n < 0 && errno == EINTR);
    if (n > 0) rest.remove_prefix(static_cast<size_t>(n));
  }
  const int error = errno;
  if (fd >= 0) close(fd);
  if (ok) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("cannot write the checkpoint to ", path, ": ",
                                                   strerror(error),
                                                   "; look at the space of that file system"));
}

OutputLimits Clamped(OutputLimits limits) {
  return {.head_bytes = std::clamp<int64_t>(limits.head_bytes, 0, kMaxKept),
          .tail_bytes = std::clamp<int64_t>(limits.tail_bytes, 0, kMaxKept)};
}

}  // namespace

absl::StatusOr<RunPlan> PlanRun(const RunRequest& request, NodeFolder& node_folder,
                                const UserLookup& lookup) {
  RunPlan plan;
  ASSIGN_OR_RETURN(const Who who, ResolveUser(request, lookup));
  if (who.become) plan.guard.become = who.account;
  ASSIGN_OR_RETURN(plan.guard.argv, Words(request));
  ASSIGN_OR_RETURN(plan.folder, node_folder.MakeRun(request.run, plan.guard.become));
  absl::Cleanup undo = [&] {
    plan.socket.reset();
    node_folder.RemoveRun(plan.folder);
  };
  SystemRandom random;
  ASSIGN_OR_RETURN(plan.socket, RunSocket::Listen(plan.folder, random.Hex128(), plan.guard.become));
  const std::string checkpoint_file = absl::StrCat(plan.folder, "/checkpoint");
  if (CheckpointNeedsFile(request.values)) {
    RETURN_IF_ERROR(WriteCheckpoint(checkpoint_file, request.values, who));
  }
  ASSIGN_OR_RETURN(plan.guard.env,
                   BuildEnvironment(request, who.account, plan.socket->Address(), checkpoint_file));
  plan.guard.record = GuardRecordOf(plan.folder);
  plan.guard.dir = !request.dir.empty()       ? request.dir
                   : who.account.home.empty() ? "/"
                                              : who.account.home;
  plan.guard.pass_streams = request.pass_streams;
  plan.guard.umask = request.umask.value_or(022);
  plan.guard.output = Clamped(request.output);
  if (!request.give_back.program.empty()) {
    plan.guard.return_program = request.give_back.program;
    ASSIGN_OR_RETURN(plan.guard.return_message, GiveBackMessage(request));
  }
  std::move(undo).Cancel();
  return plan;
}

}  // namespace matins
