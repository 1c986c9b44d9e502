// Each word that a job file may get wrong: where it is told, why, and how it is mended.
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/parse.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Refusal {
  std::string text;  // of a job: lines after its name; of a file: all of it
  std::string where;
  std::string what;
  std::string mend;
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.text; }

std::vector<std::string> ProblemsOf(const std::string& text) {
  MemoryFiles files({{"m.yaml", text}, {"bad.txt", "2026-13-01 off\n"}});
  const LintResult result = LintJobFile("m.yaml", {.files = &files});
  std::vector<std::string> texts;
  for (const Problem& problem : result.problems) texts.push_back(problem.Text());
  EXPECT_EQ(result.file.has_value(), texts.empty());
  return texts;
}

void ExpectRefused(const std::string& text, const Refusal& refusal) {
  EXPECT_THAT(ProblemsOf(text),
              ElementsAre(AllOf(StartsWith(absl::StrCat("m.yaml:", refusal.where,
                                                        refusal.where.empty() ? " " : ": ")),
                                HasSubstr(refusal.what), HasSubstr(refusal.mend))))
      << text;
}

// A good job in lines 2 to 5, and the line that makes it a bad one in line 6.
std::string JobWith(const std::string& line) {
  std::string text = "jobs:\n  - name: a\n";
  const auto add = [&](const std::string& key, const std::string& value) {
    const bool given = absl::StartsWith(line, key + ":") || absl::StartsWith(line, "-" + key);
    absl::StrAppend(&text, given ? "    #\n" : absl::StrCat("    ", key, ": ", value, "\n"));
  };
  add("schedule", "0 1 * * *");
  add("misfire", "latest");
  add("run", "{ handler: h }");
  if (!absl::StartsWith(line, "-")) absl::StrAppend(&text, "    ", line, "\n");
  return text;
}

TEST(Refusal, TheJobOfTheTableIsGood) {
  EXPECT_THAT(ProblemsOf(JobWith("priority: 1")), ElementsAre());
}

class JobRefusal : public ::testing::TestWithParam<Refusal> {};

TEST_P(JobRefusal, NamesPlaceReasonAndMend) { ExpectRefused(JobWith(GetParam().text), GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Keys, JobRefusal,
    ::testing::ValuesIn(std::vector<Refusal>{
        {"-schedule", "2:5", "neither schedule nor at", "write schedule:"},
        {"-misfire", "2:5", "misfire is not given", "latest is what K8s does"},
        {"-run", "2:5", "nothing to run", "write run:"},
        {"at: 2026-12-01T00:00:00Z", "3:5", "both given", "keep one"},
        {"schedule: \"61 * * * *\"", "6:5", "minute", "0-59"},
        {"schedule: 0 0 30 2 *", "6:5", "schedule", ""},
        {"schedule: [0, 1]", "6:5", "schedule is a text, not a list", "quotes"},
        {"schedule:", "6:5", "schedule has no value", "give it one"},
        {"schedule: ''", "6:5", "schedule is empty", "give it a value"},
        {"timezone: Asia/Shanghi", "6:5", "Asia/Shanghi", ""},
        {"timezone: CST", "6:5", "CST", ""},
        {"timezone: +08:00", "6:5", "+08:00", ""},
        {"dialect: quarz", "6:5", "'quarz'", "did you mean 'quartz'?"},
        {"period: daily", "6:5", "'daily'", "write one of: fire, hour, day"},
        {"period: hour", "6:5", "shorter than the schedule's step", "take a longer period"},
        {"biz_date: -1x", "6:5", "biz_date", ""},
        {"biz_date: -1bd", "6:5", "has no calendar", "name one"},
        {"calendar: cn", "6:5", "no calendar 'cn'", "calendars: { cn:"},
        {"misfire: Each", "6:5", "'Each'", "did you mean 'each'?"},
        {"misfire: everything", "6:5", "'everything'", "write one of: skip, latest, each"},
        {"overlap: no", "6:5", "'no'", "write one of: forbid, allow, replace, queue"},
        {"start_deadline: 60", "6:5", "'60' is not a duration", "write it like 90s"},
        {"start_deadline: 0s", "6:5", "out of range", "from 1s"},
        {"timeout: 1:30", "6:5", "'1:30' is not a duration", "write it like 90s"},
        {"timeout: 5h 3m", "6:5", "is not a duration", "write it like 90s"},
        {"timeout: 0s", "6:5", "out of range", "from 1s to"},
        {"grace: 2h", "6:5", "out of range", "to 1h"},
        {"done_by: \"9:00\"", "6:5", "no time of day", "\"09:00\""},
        {"done_by: 24:00", "6:5", "no time of day", "\"09:00\""},
        {"done_by: late", "6:5", "not a duration", ""},
        {"spread: 25h", "6:5", "out of range", "to 1d"},
        {"priority: high", "6:5", "not a whole number", "plain digits"},
        {"priority: 010", "6:5", "not a whole number", "plain digits"},
        {"priority: 1_000", "6:5", "not a whole number", "plain digits"},
        {"priority: 1e3", "6:5", "not a whole number", "plain digits"},
        {"max_lost: 0", "6:5", "out of range", "from 1"},
        {"suspend: yes", "6:5", "neither true nor false", "write true or false"},
        {"suspend: on", "6:5", "neither true nor false", "write true or false"},
        {"umask: 22", "6:5", "no umask", "022"},
        {"umask: 0892", "6:5", "no umask", "022"},
        {"dir: srv", "6:5", "no whole path", "begin it with /"},
        {"dir: /srv", "6:5", "dir is for processes", "run a command"},
        {"user: batch", "6:5", "user is for processes", "run a command"},
        {"umask: 022", "6:5", "umask is for processes", "run a command"},
        {"recovery: restart", "6:5", "'restart'", "write one of: rerun"},
        {"commit: jobs", "6:5", "'jobs'", "did you mean 'job'?"},
        {"on_lease_lost: abort", "6:5", "'abort'", "did you mean 'abort_process'?"},
        {"nodes: [\"a b\"]", "6:5", "label 'a b'", "use letters"},
        {"nodes: { a: b }", "6:5", "nodes is a list", "[\"one\", \"two\"]"},
        {"tenant: a/b", "6:5", "the character '/'", "use letters"},
        {"after: [settle]", "6:13", "names a job", "[{ job: NAME }]"},
        {"after: [{ job: a }]", "6:5", "waits for itself", "take it out"},
        {"after: [{ job: b }, { job: b }]", "6:32", "twice", "keep one"},
        {"after: { job: b }", "6:5", "after is a list", "[{ job: NAME }]"},
        {"env: [A]", "6:5", "env is a map", "{ NAME: value }"},
        {"env: { 1A: x }", "6:12", "no variable's name", "no digit first"},
        {"env: { MATINS_FENCE: x }", "6:12", "set by Matins", "another name"},
        {"env: { TRACEPARENT: x }", "6:12", "set by Matins", "another name"},
        {"env: { LD_PRELOAD: /x.so }", "6:12", "what programs are", "own script"},
        {"env: { A: b, LD_LIBRARY_PATH: /lib }", "6:18", "what programs are", "own script"},
        {"env: { BASH_ENV: { file: /x } }", "6:12", "what programs are", "own script"},
        {"env: { PATH: \"/bin:bin\" }", "6:18", "'bin' is not absolute", "absolute folders"},
        {"env: { PATH: \"/bin:\" }", "6:18", "'' is not absolute", "absolute folders"},
        {"env: { A: }", "6:15", "env.A is nothing", "\"\" for an empty one"},
        {"env: { A: { file: t } }", "6:23", "no whole path", "begin it with /"},
        {"env: { A: { fil: /t } }", "6:15", "env.A is a map", "{ file: /path }"},
        {"env: { A: \"{{bizdate}}\" }", "6:15", "unknown name 'bizdate'",
         "did you mean 'biz_date'?"},
        {"output: { keep: 1GB }", "6:15", "no size", "256KiB"},
        {"output: { keep: 17MiB }", "6:15", "no size", "16MiB"},
        {"history: { succeeded: -1 }", "6:16", "out of range", "from 0"},
        {"history: { succeded: 1 }", "6:16", "unknown key 'history.succeded'",
         "did you mean 'succeeded'?"},
        {"history: 3", "6:14", "history: a map is wanted", "below it"},
        {"retry: { attempts: 0 }", "6:14", "out of range", "from 1"},
        {"retry: { backoff: 10m..30s }", "6:14", "longer than its most", "30s..10m"},
        {"retry: { backoff: 1s..2s..3s }", "6:14", "no backoff", "30s..10m"},
        {"backfill: { start: 2026-02-30 }", "6:17", "not a date", "2026-11-29"},
        {"backfill: { max_periods: 0 }", "6:17", "backfill.max_periods", "or unlimited"},
        {"backfill: { max_age: 90 }", "6:17", "'90' is not a duration", "90s"},
        {"backfill: { order: strict }", "6:17", "order: strict with misfire: latest",
         "misfire: each"},
        {"backfill: { max: 3 }", "6:17", "unknown key 'backfill.max'", "did you mean"},
        {"lock: { scope: jobb }", "6:13", "none of its words", "did you mean 'job'?"},
        {"lock: { scope: \"x-{{day}}\" }", "6:13", "unknown name 'day'",
         "job, tenant, period, biz_date"},
        {"lock: { scope: \"x-{{biz_date\" }", "6:13", "braces do not match", "settle-{{biz_date}}"},
        {"lock: { scope: \"x-{biz_date:%H}\" }", "6:13", "unknown % letter", "%Y %m %d"},
        {"lock: { scope: tenant }", "6:13", "the job has none", "tenant: NAME"},
        {"lock: { ttl: 10ms }", "6:13", "out of range", "from 1s"},
        {"lock: { provider: zookeeper }", "6:13", "'zookeeper'", "redis"},
        {"dst: { gap: later }", "6:12", "'later'", "write one of: next, skip, shift"},
        {"run: ./x.sh", "6:10", "run: a map is wanted", "below it"},
        {"run: { command: \"./x --y\" }", "6:12", "list of words", "shell:"},
        {"run: { command: [] }", "6:12", "names no program", "the program first"},
        {"run: { command: [./x, \"{{biz}}\"] }", "6:12", "unknown name 'biz'", ""},
        {"run: { command: [./x, \"{{biz_date\"] }", "6:12", "'{{' without '}}'", "close it"},
        {"run: { command: [./x], shell: y }", "6:12", "more than one", "write one of"},
        {"run: {}", "6:10", "nothing to run", "write one of"},
        {"run: { shell: \"x {{biz_date}}\" }", "6:12", "in a shell text", "\"$MATINS_BIZ_DATE\""},
        {"run: { handler: \"a b\" }", "6:12", "handler 'a b'", "use letters"},
        {"run: { exec: false }", "6:12", "is true, or is left out", "exec: true"},
        {"run: { exec: true, command: [x] }", "6:24", "more than one", "write one of"},
        {"check: { exec: true }", "6:5", "exec is for run alone", "command:"},
        {"check: { comand: [x] }", "6:14", "unknown key 'check.comand'", "did you mean 'command'?"},
        {"concurrencyPolicy: forbid", "6:5", "none of its words", "overlap: forbid"},
        {"startingDeadlineSeconds: 60s", "6:5", "no number of seconds", "start_deadline: 60s"},
        {"no: thing", "6:5", "unknown key 'no'", ""},
        {"\"\": thing", "6:5", "unknown key ''", "write one of"},
    }));

INSTANTIATE_TEST_SUITE_P(
    LaterVersions, JobRefusal,
    ::testing::ValuesIn(std::vector<Refusal>{
        {"alerts: {}", "6:5", "alerts is a list of texts", "[\"one\", \"two\"]"},
        {"alerts: [a/b]", "6:5", "alerts: channel", ""},
        {"audit: {}", "6:5", "audit", ""},
        {"audit: now and then", "6:5", "audit: ", ""},
        {"ping: x", "6:5", "ping is not a job's own", "beside jobs:"},
        {"mask: x", "6:5", "mask: 'x' is none of its words", "hash"},
        {"limits: { tenant: 3 }", "6:15", "limits.tenant is not a job's own", "the file's limits"},
        {"limits: { backfill_share: 3% }", "6:15", "limits.backfill_share is not a job's own",
         "the file's limits"},
        {"limits: { key: \"bank-{{tenant}}\" }", "6:15", "the job has none", "tenant: NAME"},
        {"limits: { key: \"bank-{{who}}\" }", "6:15", "unknown name 'who'", "biz_date"},
        {"run: { http: {} }", "6:12", "run.http is not in this version", "command:"},
        {"run: { worker: x }", "6:12", "run.worker is not in this version", "command:"},
    }));

TEST(Refusal, WordsThatContradictEachOther) {
  ExpectRefused(R"(jobs:
  - name: a
    schedule: 0 1 * * *
    misfire: each
    overlap: replace
    run: { handler: h }
)",
                {"", "5:5", "overlap: replace with misfire: each", "forbid or queue"});
  ExpectRefused(R"(jobs:
  - name: a
    schedule: 0 1 * * *
    misfire: latest
    overlap: allow
    lock: { scope: job }
    run: { handler: h }
)",
                {"", "6:13", "scope: job with overlap: allow", "scope: period"});
  ExpectRefused(R"(jobs:
  - name: a
    schedule: 0 1 * * *
    misfire: latest
    on_lease_lost: abort_process
    run: { command: [x] }
)",
                {"", "5:5", "abort_process is for handlers", "take it out"});
  ExpectRefused(R"(jobs:
  - name: a
    schedule: 0 1 * * *
    misfire: latest
    overlap: allow
    concurrencyPolicy: Allow
    run: { handler: h }
)",
                {"", "6:5", "K8s' word for overlap", "keep one"});
  ExpectRefused(R"(jobs:
  - { name: a, schedule: 0 1 * * 1, period: day, misfire: skip, run: { handler: h } }
)",
                {"", "2:37", "period: day is shorter", "longer period"});
}

// The period must hold the shortest step; days left out by weekday or calendar are no step.
TEST(Refusal, APeriodAsLongAsTheStepIsGood) {
  for (const char* good :
       {"0 1 * * *, period: day", "0 9 * * 1-5, period: day", "0 * * * *, period: hour",
        "'*/5 * * * *', period: day", "0 1 * * 1, period: week", "0 1 1 * *, period: month",
        "0 1 31 * *, period: month", "0 2 * * *, period: day, timezone: America/New_York",
        "0 0 1 1 *, period: fire", "'@every 24h', period: day"}) {
    EXPECT_THAT(ProblemsOf(absl::StrCat("jobs: [{ name: a, schedule: ", good,
                                        ", misfire: each, run: { handler: h } }]\n")),
                ElementsAre())
        << good;
  }
  for (const char* bad :
       {"0 1 * * *, period: hour", "0 9 * * 1, period: day", "0 1 1 * *, period: week",
        "0 0 1 1 *, period: month", "'@every 25h', period: day", "0 */2 * * *, period: hour"}) {
    EXPECT_THAT(ProblemsOf(absl::StrCat("jobs: [{ name: a, schedule: ", bad,
                                        ", misfire: each, run: { handler: h } }]\n")),
                ElementsAre(HasSubstr("is shorter than the schedule's step")))
        << bad;
  }
}

class FileRefusal : public ::testing::TestWithParam<Refusal> {};

TEST_P(FileRefusal, NamesPlaceReasonAndMend) { ExpectRefused(GetParam().text, GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Settings, FileRefusal,
    ::testing::ValuesIn(std::vector<Refusal>{
        {"jobs: []\nstore: mysql://h/d\n", "2:1", "mysql is not in this version", "sqlite:FILE"},
        {"jobs: []\nstore: redis://h\n", "2:1", "redis is not in this version", "sqlite:FILE"},
        {"jobs: []\nstore: /var/x.db\n", "2:1", "no address of a store", "sqlite:FILE"},
        {"jobs: []\nstore: 'sqlite:'\n", "2:1", "no address of a store", "sqlite:FILE"},
        {"jobs: []\nredis: tiger@h\n", "2:1", "no address of a Redis", "redis://HOST"},
        {"jobs: []\nmask: hash\n", "2:1", "mask stands at a job", "defaults"},
        {"jobs: []\nlisten: 127.0.0.1:7171\n", "2:1", "listen is not in this version",
         "take it out"},
        {"jobs: []\njournal: all\n", "2:1", "'all'", "runs"},
        {"jobs: []\nlimits: { tenant: { a: 0 } }\n", "2:21", "out of range", "from 1"},
        {"jobs: []\nlimits: { tenant: { a*b: 1 } }\n", "2:21", "only at the end", "PREFIX*"},
        {"jobs: []\nlimits: { key: 3 }\n", "2:16", "a map is wanted", "key: value"},
        {"jobs: []\nlimits: { backfill_share: 50% }\n", "2:11", "a share of limits.global",
         "global: N"},
        {"jobs: []\nlimits: { global: 9, backfill_share: 0% }\n", "2:22", "no share", "1%"},
        {"jobs: []\nlimits: { global: 0 }\n", "2:11", "out of range", "from 1"},
        {"jobs: []\nalerts: {}\n", "2:9", "alerts has no channels", "channels: { ops"},
        {"jobs: []\nalerts: { channels: { a: { kind: slak, url: { env: U } } } }\n", "2:28",
         "none of its words", "slack"},
        {"jobs: []\nalerts: { channels: { a: { kind: slack, url: \"https://h/x\" } } }\n", "2:46",
         "alerts.channels.a.url is a secret", "{ env: NAME }"},
        {"jobs: []\nalerts: { channels: { a: { kind: slack, url: { file: x } } } }\n", "2:54",
         "no whole path", "begin it with /"},
        {"jobs: []\nalerts: { channels: { a: { kind: slack } } }\n", "2:26", "has no url",
         "{ env: NAME }"},
        {"jobs: []\nalerts: { channels: { a: { kind: wecom, url: { env: U }, secret: { env: S } } "
         "} }\n",
         "2:58", "unknown key 'alerts.channels.a.secret'", ""},
        {"jobs: []\nalerts: { channels: { a: { kind: webhook, url: ftp://x } } }\n", "2:43",
         "no address of a web server", "https://"},
        {"jobs: []\nalerts: { channels: { a: { kind: webhook, url: http://x, body: \"{{txt}}\" } } "
         "}\n",
         "2:58", "{{txt}} is nothing of an alert", ""},
        {"jobs: []\nalerts: { channels: { a: { kind: mail, server: mail.host, from: a@b, to: c@d } "
         "} }\n",
         "2:40", "no mail server", "smtps://"},
        {"jobs: []\nalerts: { channels: { a: { kind: mail, server: smtp://h, from: a@b, to: c } } "
         "}\n",
         "2:69", "no mail address", "name@host"},
        {"jobs: []\nalerts: { channels: { a: { kind: command, command: [] } } }\n", "2:43",
         "names no program", ""},
        {"jobs: []\nalerts: { channels: { a: { kind: command, command: [x], remind: 1s } } }\n",
         "2:57", "out of range", "1m"},
        {"jobs: []\nping: ftp://x\n", "2:1", "no address of a web server", "https://"},
        {"jobs: []\nping: { start: \"http://x\" }\n", "2:7", "ping has no success", "success:"},
        {"jobs: []\nlable: x\n", "2:1", "unknown key 'lable'", "write one of"},
        {"jobs: []\ncalendars: { a: { file: none.ics } }\n", "2:14", "cannot read none.ics",
         "beside the job file"},
        {"jobs: []\ncalendars: { a: { file: bad.txt } }\n", "2:14", "2026-13-01", ""},
        {"jobs: []\ncalendars: { a: { until: 2026-12-31 } }\n", "2:17", "has no file", "days.ics"},
        {"jobs: []\ninclude: none.yaml\n", "2:1", "there is no file none.yaml", "beside this one"},
        {"jobs: []\ninclude: m.yaml\n", "2:1", "includes itself: m.yaml > m.yaml", "take one"},
        {"jobs: []\ndefaults: { name: a }\n", "2:13", "defaults with a name", "take it out"},
        {"jobs: []\ndefaults: 3\n", "2:1", "defaults is a map", "defaults: {"},
        {"store: sqlite:x\n", "1:1", "the file has no jobs", "write jobs:"},
        {"job: []\n", "1:1", "unknown key 'job'", "did you mean 'jobs'?"},
        {"jobs: { a: 1 }\n", "1:1", "jobs is a list, not a map", "- name: NAME"},
        {"jobs: [a]\n", "1:8", "a map is wanted here, not a text", "name: first"},
        {"- a\n", "1:1", "a map is wanted here, not a list", "below it"},
        {"", "", "the file is empty", "write jobs:"},
    }));

// Never one of two zones silently winning.
TEST(Refusal, AZoneGivenTwice) {
  ExpectRefused(R"(jobs:
  - name: a
    schedule: "*-*-* 01:00:00 Asia/Shanghai"
    timezone: Europe/Paris
    misfire: skip
    run: { handler: h }
)",
                {"", "4:5", "the schedule says Asia/Shanghai, timezone says Europe/Paris",
                 "keep one of them"});
  for (const char* zone : {"", "    timezone: Europe/Paris\n"}) {
    EXPECT_THAT(ProblemsOf(absl::StrCat(R"(jobs:
  - name: a
    schedule: "CRON_TZ=Etc/UTC */20 * * * *"
    misfire: skip
    run: { handler: h }
)",
                                        zone)),
                ElementsAre(AllOf(StartsWith("m.yaml:3:5: schedule: "), HasSubstr("timezone"))));
  }
  // A default is no second word of the job's own.
  EXPECT_THAT(ProblemsOf(R"(defaults: { timezone: Europe/Paris }
jobs:
  - { name: a, schedule: "*-*-* 01:00:00 Asia/Shanghai", misfire: skip, run: { handler: h } }
)"),
              ElementsAre());
}

TEST(Refusal, JobsThatWaitForEachOther) {
  ExpectRefused(R"(jobs:
  - { name: a, schedule: "@daily", misfire: skip, run: { handler: h }, after: [{ job: b }] }
  - { name: b, schedule: "@daily", misfire: skip, run: { handler: h }, after: [{ job: c }] }
  - { name: c, schedule: "@daily", misfire: skip, run: { handler: h }, after: [{ job: a }] }
)",
                {"", "2:72", "jobs wait for each other: a after b after c after a", "take one"});
}

TEST(Refusal, AnErrorInADefaultIsToldOnce) {
  ExpectRefused(R"(defaults: { timeout: soon }
jobs:
  - { name: a, schedule: "@daily", misfire: skip, run: { handler: h } }
  - { name: b, schedule: "@daily", misfire: skip, run: { handler: h } }
)",
                {"", "1:13", "'soon' is not a duration", "90s"});
}

}  // namespace
}  // namespace matins
