#include "cli/completion.h"

#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"

namespace matins {
namespace {

struct Word {
  std::string text, help;
};

// A command by its words ("job apply"; empty: the program itself), and what may follow it.
struct Node {
  std::string path;
  std::vector<Word> words;
};

void Collect(const CLI::App& app, const std::string& path, std::vector<Node>& nodes) {
  Node node{path, {}};
  std::vector<std::pair<std::string, const CLI::App*>> below;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_group().empty()) continue;  // hidden
    node.words.push_back({sub->get_name(), sub->get_description()});
    below.emplace_back(path.empty() ? sub->get_name() : absl::StrCat(path, " ", sub->get_name()),
                       sub);
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      node.words.push_back({absl::StrCat("--", name), option->get_description()});
    }
  }
  nodes.push_back(std::move(node));
  for (const auto& [name, sub] : below) Collect(*sub, name, nodes);
}

std::string WordsOf(const Node& node) {
  return absl::StrJoin(node.words, " ",
                       [](std::string* out, const Word& word) { absl::StrAppend(out, word.text); });
}

// A bash function that finds the deepest command among the words so far and offers what may follow
// it.
std::string Bash(const std::vector<Node>& nodes) {
  std::string cases;
  for (const Node& node : nodes) {
    absl::StrAppend(&cases, "    '", node.path, "') words='", WordsOf(node), "' ;;\n");
  }
  return absl::StrCat(
      "_matins() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} path='' try words i\n",
      "  _matins_words ''\n",
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    try=\"${path:+$path }${COMP_WORDS[i]}\"\n"
      "    if _matins_words \"$try\"; then path=$try; else _matins_words \"$path\"; fi\n"
      "  done\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\"; case $cur in -*) ;; *) "
      "compgen -f -- \"$cur\" ;; esac)\n"
      "}\n"
      "_matins_words() {\n"
      "  case \"$1\" in\n",
      cases,
      "    *) return 1 ;;\n"
      "  esac\n"
      "}\n"
      "complete -o filenames -F _matins matins\n");
}

std::string Zsh(const std::vector<Node>& nodes) {
  return absl::StrCat("#compdef matins\nautoload -U +X bashcompinit && bashcompinit\n",
                      Bash(nodes));
}

std::string Fish(const std::vector<Node>& nodes) {
  std::string script = "complete -c matins -f\n";
  for (const Node& node : nodes) {
    std::string condition = "__fish_use_subcommand";
    if (!node.path.empty()) {
      condition = absl::StrCat("string match -qr '^matins ", node.path,
                               "( |$)' -- (commandline -poc | string join ' ')");
    }
    for (const Word& word : node.words) {
      const bool option = word.text.rfind("--", 0) == 0;
      absl::StrAppend(
          &script, "complete -c matins -n \"", condition, "\" ",
          option ? absl::StrCat("-l ", word.text.substr(2)) : absl::StrCat("-a ", word.text),
          " -d '", absl::StrReplaceAll(word.help, {{"'", "\\'"}}), "'\n");
    }
  }
  return script;
}

}  // namespace

absl::StatusOr<std::string> CompletionScript(const CLI::App& app, absl::string_view shell) {
  std::vector<Node> nodes;
  Collect(app, "", nodes);
  if (shell == "bash") return Bash(nodes);
  if (shell == "zsh") return Zsh(nodes);
  if (shell == "fish") return Fish(nodes);
  return BadInput("SHELL", absl::StrCat("'", shell, "' is not known"), "bash, zsh or fish");
}

}  // namespace matins
