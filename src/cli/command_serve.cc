// matins serve: a node. Plans, runs and looks after runs until it is told to stop.
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/log.h"
#include "job/names.h"
#include "job/parse.h"
#include "ops/jobs.h"
#include "ops/node.h"
#include "send/curl_sender.h"

namespace matins {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(2);
constexpr absl::Duration kLookForOutdated = absl::Seconds(1);

struct ServeArgs {
  std::string file, source, history, runtime, drain = "30s";
  std::vector<std::string> labels;
  int slots = 64;
};

// The signals that end or change a node come as reads, so that no handler runs in the midst of
// anything.
absl::StatusOr<int> SignalDescriptor() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0)
    return absl::InternalError("signals could not be blocked");
  const int fd = signalfd(-1, &set, SFD_CLOEXEC);
  if (fd < 0) return absl::InternalError(absl::StrCat("signalfd: errno ", errno));
  return fd;
}

// A channel that lacks a secret is silent when it is needed; it is said beforehand.
void WarnOfSecrets(const AlertConfig& config) {
  const auto ask = [](const std::string& whose, const SecretText& secret) {
    if (secret.empty()) return;
    const absl::Status status = ReadSecret(secret).status();
    if (!status.ok()) LogWarning(absl::StrCat(whose, ": ", std::string(status.message())));
  };
  for (const Channel& channel : config.channels) {
    const std::string whose = absl::StrCat("channel ", channel.name);
    for (const SecretText& secret : {channel.url, channel.secret, channel.password}) {
      ask(whose, secret);
    }
    for (const auto& [name, secret] : channel.headers) ask(whose, secret);
    for (const auto& [name, secret] : channel.env) ask(whose, secret);
  }
  ask("ping", config.ping.success);
}

absl::StatusOr<JobFile> ReadFile(const std::string& path) {
  ParseOptions options;
  options.now = SystemClock().WallNow();
  ASSIGN_OR_RETURN(JobFile file, ParseJobFile(path, options));
  for (const Problem& warning : file.warnings) LogWarning(warning.Text());
  WarnOfSecrets(file.alerts);
  for (const Job& job : file.jobs) {
    if (job.run.kind != RunKind::kHandler) continue;
    LogWarning(absl::StrCat("job '", job.name,
                            "': run.handler: this node has no handlers; its runs ",
                            "wait for a program that embeds Matins and has '", job.run.handler,
                            "' (for a program of its own write run: { command: [...] })"));
  }
  return file;
}

absl::Status Apply(Database& database, const JobFile& file, const std::string& source) {
  ASSIGN_OR_RETURN(Session session, Session::Open(database, absl::StrCat("serve:", WhoAmI())));
  ApplyFileOptions options;
  options.source = source;
  ASSIGN_OR_RETURN(const ApplyAnswer answer, ApplyFile(session, file, options));
  LogInfo(absl::StrCat("applied ", source, ": ", answer.added.size(), " added, ",
                       answer.changed.size(), " changed, ", answer.unchanged.size(), " unchanged, ",
                       answer.missing.size(), " no longer in it and left alone"));
  return absl::OkStatus();
}

// SIGHUP: the file again; what is wrong with it is said, and changes nothing.
void Reload(ServingNode& node, const ServeArgs& args) {
  if (args.file.empty()) return;
  const auto reload = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const JobFile file, ReadFile(args.file));
    RETURN_IF_ERROR(Apply(node.database(), file, args.source));
    node.SetAlerts(file.alerts);
    return absl::OkStatus();
  };
  const absl::Status status = reload();
  if (!status.ok()) LogError(absl::StrCat("not reloaded: ", std::string(status.message())));
  node.engine().LookNow();
}

// A node whose store is of a newer program has nothing to do once what runs here has ended.
bool IsLeftOver(ServingNode& node) {
  return node.engine().outdated() && node.engine().running() == 0;
}

void AwaitTheEnd(int signals, ServingNode& node, const ServeArgs& args) {
  for (;;) {
    pollfd asked{signals, POLLIN, 0};
    const int told = poll(&asked, 1, static_cast<int>(absl::ToInt64Milliseconds(kLookForOutdated)));
    if (IsLeftOver(node)) return;
    if (told == 0 || (told < 0 && errno == EINTR)) continue;
    signalfd_siginfo info;
    const ssize_t got = read(signals, &info, sizeof info);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof info) return;
    if (info.ssi_signo != SIGHUP) return;
    Reload(node, args);
  }
}

// False: a signal asked to end meanwhile. A SIGHUP has nothing to reload yet.
bool Pause(int signals, absl::Duration pause) {
  pollfd asked{signals, POLLIN, 0};
  if (poll(&asked, 1, static_cast<int>(absl::ToInt64Milliseconds(pause))) <= 0) return true;
  signalfd_siginfo info;
  return read(signals, &info, sizeof info) == sizeof info && info.ssi_signo == SIGHUP;
}

// Starts the node, which brings the store up to date. A store that is away, at boot or in the midst
// of a failover, is waited for; null: asked to end before it came. A start that was cut is done
// again whole: each of its steps changes nothing the second time.
absl::StatusOr<std::unique_ptr<ServingNode>> StartNode(int signals, const NodeConfig& config,
                                                       EngineEvents& events) {
  std::string told;
  absl::Duration pause = kFirstPause;
  for (;;) {
    absl::StatusOr<std::unique_ptr<ServingNode>> node = ServingNode::Start(config, events);
    if (node.ok() || !MayBeAskedAgain(node.status())) return node;
    if (told != node.status().message()) {
      told = std::string(node.status().message());
      LogWarning(absl::StrCat(event::kStoreAway, " waits for it: ", told));
    }
    if (!Pause(signals, pause)) return nullptr;
    pause = std::min(pause * 2, kLongestPause);
  }
}

// A door that is asked for and is not there is passed by; that is said once.
void WarnOfNoDoor(const std::optional<JobFile>& file, const std::string& redis_url) {
  if (!file || !redis_url.empty()) return;
  for (const Job& job : file->jobs) {
    if (job.lock.provider != LockProvider::kRedis) continue;
    LogWarning(absl::StrCat("job '", job.name,
                            "': lock.provider: redis, and this node knows no Redis: the store "
                            "alone is asked; write redis: redis://HOST in the file, or --redis"));
  }
}

// Settings of the store that weaken a promise are said loudly at each start.
absl::Status WarnOfSettings(Database& database) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ActStore> acts, database.OpenActs());
  ASSIGN_OR_RETURN(const StoreStatus status, acts->ReadStatus());
  for (const std::string& warning : status.warnings) LogWarning(warning);
  return absl::OkStatus();
}

absl::Status Serve(const Shell& shell, ServeArgs args) {
  ASSIGN_OR_RETURN(const absl::Duration drain, From("--drain", ParseDuration(args.drain)));
  for (const std::string& label : args.labels) RETURN_IF_ERROR(CheckName("--label", label));
  NodeConfig config;
  std::optional<JobFile> file;
  if (!args.file.empty()) {
    if (args.source.empty()) args.source = args.file.substr(args.file.find_last_of('/') + 1);
    ASSIGN_OR_RETURN(file, ReadFile(args.file));
    config.store_url = file->store;
    config.redis_url = file->redis;
    config.audit = file->audit;
    config.alerts = file->alerts;
  }
  if (const auto url = shell.StoreUrl(); url.ok() || config.store_url.empty()) {
    RETURN_IF_ERROR(url.status());
    config.store_url = *url;
  }
  if (const std::string url = shell.RedisUrl(); !url.empty()) config.redis_url = url;
  WarnOfNoDoor(file, config.redis_url);
  ASSIGN_OR_RETURN(const int signals, SignalDescriptor());
  config.labels = args.labels;
  config.slots = args.slots;
  config.history_file = args.history;
  config.runtime_folder = args.runtime;
  config.give_back_program = OwnProgram();
  if (file) {
    config.prepare = [&file, &args](Database& database) {
      return Apply(database, *file, args.source);
    };
  }
  EventLog events;
  const std::unique_ptr<AlertSender> sender = NewCurlSender();
  config.alert_sender = sender.get();
  ASSIGN_OR_RETURN(const std::unique_ptr<ServingNode> node, StartNode(signals, config, events));
  if (node == nullptr) return absl::OkStatus();
  if (const absl::Status read = WarnOfSettings(node->database()); !read.ok()) {
    LogWarning(
        absl::StrCat("the store's settings could not be read: ", std::string(read.message())));
  }
  LogInfo(absl::StrCat("node ", node->name(), " serves ", node->database().Describe()));
  AwaitTheEnd(signals, *node, args);
  const bool outdated = node->engine().outdated();
  LogInfo(absl::StrCat("draining: ", node->engine().running(), " run(s) have ", DurationText(drain),
                       " to end"));
  const absl::Status left = node->Drain(drain);
  LogInfo(left.ok() ? "left in order" : absl::StrCat("left: ", std::string(left.message())));
  if (left.ok() && outdated) {
    return absl::FailedPreconditionError(absl::StrCat(
        node->database().Describe(),
        ": a newer matins has migrated its schema; this node has ended what it ran and "
        "starts nothing more: use that version, or a newer one"));
  }
  return left;
}

}  // namespace

void AddServeCommand(CLI::App& app, Shell& shell) {
  CLI::App& command = *app.add_subcommand(
      "serve", "a node: plans and runs jobs until SIGTERM; SIGHUP reads the file again");
  auto args = std::make_shared<ServeArgs>();
  CLI::Option* file = command.add_option(
      "FILE", args->file,
      "a job file, applied at the start; without one the store's jobs are served");
  command
      .add_option("--source", args->source,
                  "what this set of jobs is called; default: the file's name")
      ->needs(file);
  command
      .add_option("--label", args->labels,
                  "a label of this node, for jobs with `nodes:`; may be repeated")
      ->take_all();
  command.add_option("--slots", args->slots, "runs at a time; default 64")
      ->check(CLI::Range(1, 100000));
  command.add_option(
      "--drain", args->drain,
      "how long runs may go on after SIGTERM before they are stopped and handed over; default 30s");
  command.add_option("--runtime-dir", args->runtime, "folder for the runs' sockets");
  command.add_option("--history", args->history,
                     "append the event history to this file, a JSON object a line");
  shell.AddStoreOption(command);
  shell.AddRedisOption(command);
  shell.Does(command, [&shell, args] { return Serve(shell, *args); });
}

}  // namespace matins
