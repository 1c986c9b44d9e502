#include "job/read_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/variable.h"
#include "job/key_template.h"
#include "job/names.h"
#include "job/values_text.h"

namespace matins {
namespace {

void ReadAfter(Fields& fields, Job& job) {
  const NodePtr list = fields.Get("after");
  if (list == nullptr) return;
  constexpr absl::string_view kMend = "write after: [{ job: NAME }]";
  if (list->kind != YamlNode::Kind::kList) {
    fields.Error("after", absl::StrCat("after is a list, not ", KindText(*list)), kMend);
    return;
  }
  for (const NodePtr& item : list->items) {
    const Entry* entry = item->kind == YamlNode::Kind::kMap && item->entries.size() == 1
                             ? item->Find("job")
                             : nullptr;
    if (entry == nullptr || entry->value->kind != YamlNode::Kind::kScalar) {
      fields.ErrorAt(item->at, "after", "an entry of after names a job, and nothing else", kMend);
    } else if (const absl::Status status = CheckName("after: job name", entry->value->text);
               !status.ok()) {
      fields.ErrorAt(entry->value->at, "after", status.message(), "");
    } else if (std::count(job.after.begin(), job.after.end(), After{entry->value->text}) > 0) {
      fields.ErrorAt(entry->value->at, "after",
                     absl::StrCat("after names '", entry->value->text, "' twice"),
                     "keep one of them");
    } else {
      job.after.push_back({entry->value->text});
    }
  }
}

// The value of one variable: a text, or { file: PATH }.
void ReadVariable(Fields& fields, const Entry& entry, Job& job) {
  const YamlNode& value = *entry.value;
  if (value.kind == YamlNode::Kind::kScalar) {
    if (const absl::Status status = CheckRunTemplate(value.text); !status.ok()) {
      fields.ErrorAt(value.at, "env", absl::StrCat("env.", entry.key, ": ", status.message()), "");
    }
    // What a template makes of it is known only at the start, and asked again there.
    if (entry.key == "PATH" && !absl::StrContains(value.text, "{{")) {
      if (const absl::Status status = CheckEnvPath(value.text); !status.ok()) {
        fields.ErrorAt(value.at, "env", status.message(), "");
      }
    }
    job.env[entry.key].text = value.text;
    return;
  }
  const Entry* file = value.kind == YamlNode::Kind::kMap && value.entries.size() == 1
                          ? value.Find("file")
                          : nullptr;
  if (file == nullptr || file->value->kind != YamlNode::Kind::kScalar) {
    fields.ErrorAt(value.at, "env", absl::StrCat("env.", entry.key, " is ", KindText(value)),
                   "write a text (\"\" for an empty one), or { file: /path }");
  } else if (!absl::StartsWith(file->value->text, "/")) {
    fields.ErrorAt(
        file->value->at, "env",
        absl::StrCat("env.", entry.key, ".file: '", file->value->text, "' is no whole path"),
        "begin it with /");
  } else {
    job.env[entry.key].file = file->value->text;
  }
}

void ReadEnv(Fields& fields, Job& job) {
  const NodePtr map = fields.Get("env");
  if (map == nullptr) return;
  if (map->kind != YamlNode::Kind::kMap) {
    fields.Error("env", absl::StrCat("env is a map, not ", KindText(*map)),
                 "write env: { NAME: value }");
    return;
  }
  for (const Entry& entry : map->entries) {
    if (const absl::Status status = CheckEnvName(entry.key); !status.ok()) {
      fields.ErrorAt(entry.at, "env", status.message(), "");
    } else {
      ReadVariable(fields, entry, job);
    }
  }
}

// A command's words; a single text with blanks is a command line that nobody would split.
std::vector<std::string> ReadCommand(Fields& run) {
  const NodePtr node = run.Get("command");
  if (node != nullptr && node->kind == YamlNode::Kind::kScalar &&
      node->text.find_first_of(" \t\n") != std::string::npos) {
    run.Error("command", absl::StrCat(run.Path("command"), " is a list of words"),
              "write [\"./recon\", \"--date\", \"{{biz_date}}\"], or shell: for a command line");
    return {};
  }
  std::vector<std::string> words = run.TextsOr("command", {});
  for (const std::string& word : words) {
    if (const absl::Status status = CheckRunTemplate(word); !status.ok()) {
      run.Error("command", absl::StrCat(run.Path("command"), ": ", status.message()), "");
    }
  }
  if ((words.empty() || words[0].empty()) && !run.Failed("command")) {
    run.Error("command", absl::StrCat(run.Path("command"), " names no program"),
              "write the program first: [\"./recon\"]");
  }
  return words;
}

RunSpec ReadSpec(Fields& run) {
  RunSpec spec;
  const bool command = run.Has("command"), shell = run.Has("shell"), handler = run.Has("handler"),
             exec = run.Has("exec");
  for (const char* key : {"http", "worker"}) {
    run.NotYet(key, "write command:, shell:, handler: or exec:");
  }
  const bool later = run.Failed("http") || run.Failed("worker");
  const bool bad =
      run.Failed("command") || run.Failed("shell") || run.Failed("handler") || run.Failed("exec");
  const int given = command + shell + handler + exec;
  if ((given > 1 || (given == 0 && run.empty())) && !later && !bad) {
    run.Error("command",
              absl::StrCat(run.path(), given == 0 ? " says nothing to run" : " says more than one"),
              "write one of command: [...], shell: \"...\", handler: NAME, exec: true");
  }
  if (command) {
    spec.kind = RunKind::kCommand;
    spec.command = ReadCommand(run);
  } else if (shell) {
    spec.kind = RunKind::kShell;
    spec.shell = run.TextOr("shell", "");
    if (const absl::Status status = CheckShellTemplate(spec.shell); !status.ok()) {
      run.Error("shell", absl::StrCat(run.Path("shell"), ": ", status.message()), "");
    }
  } else if (handler) {
    spec.handler = run.TextOr("handler", "");
    if (const absl::Status status = CheckName("handler", spec.handler);
        !status.ok() && !run.Failed("handler")) {
      run.Error("handler", status.message(), "");
    }
  } else if (exec) {
    spec.kind = RunKind::kExec;
    if (!run.BoolOr("exec", true) && !run.Failed("exec")) {
      run.Error("exec", absl::StrCat(run.Path("exec"), " is true, or is left out"),
                "write exec: true for a job that `matins exec` runs");
    }
  }
  run.Finish();
  return spec;
}

}  // namespace

void ReadPlace(Fields& fields, Job& job) {
  job.nodes = fields.TextsOr("nodes", {});
  for (const std::string& label : job.nodes) {
    if (const absl::Status status = CheckName("nodes: label", label); !status.ok()) {
      fields.Error("nodes", status.message(), "");
    }
  }
  job.priority = fields.IntOr("priority", 0, -1'000'000, 1'000'000);
  ReadAfter(fields, job);
  ReadEnv(fields, job);
  job.dir = fields.TextOr("dir", "");
  if (!job.dir.empty() && job.dir[0] != '/') {
    fields.Error("dir", absl::StrCat("dir: '", job.dir, "' is no whole path"),
                 "begin it with /: nodes have no folder in common");
  }
  job.user = fields.TextOr("user", "");
  job.umask = fields.ParsedOr<std::optional<int>>("umask", std::nullopt, ParseUmask);
  Fields output = fields.Map("output");
  job.output_keep_bytes = output.ParsedOr("keep", job.output_keep_bytes, ParseBytes);
  output.Finish();
}

void ReadRun(Fields& fields, Job& job) {
  if (!fields.Has("run")) {
    if (!fields.Failed("run")) {
      fields.Error(
          "run", "the job has nothing to run",
          "write run: { command: [...] }, { shell: \"...\" }, { handler: NAME } or { exec: "
          "true }");
    }
  } else {
    Fields run = fields.Map("run");
    if (!fields.Failed("run")) job.run = ReadSpec(run);
  }
  if (fields.Has("check")) {
    Fields check = fields.Map("check");
    if (!fields.Failed("check")) job.check = ReadSpec(check);
    if (job.check && job.check->kind == RunKind::kExec) {
      fields.Error("check", "check: exec is for run alone",
                   "write its command: [...] or shell: \"...\"");
    }
  }
}

}  // namespace matins
