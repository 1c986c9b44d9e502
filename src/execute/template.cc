#include "execute/template.h"

#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace matins {
namespace {

constexpr absl::string_view kNames =
    "job, tenant, period, biz_date, window_start, window_end, scheduled_for, generation, attempt, "
    "run_id, fence, backfill, checkpoint, param.NAME";

std::optional<std::string> ValueOf(absl::string_view name, const RunValues& values, int64_t fence) {
  if (name == "job") return values.job;
  if (name == "tenant") return values.tenant;
  if (name == "period") return values.period;
  if (name == "biz_date") return values.biz_date;
  if (name == "window_start") return values.window_start;
  if (name == "window_end") return values.window_end;
  if (name == "scheduled_for") return values.scheduled_for;
  if (name == "generation") return absl::StrCat(values.generation);
  if (name == "attempt") return absl::StrCat(values.attempt);
  if (name == "run_id" || name == "fence") return absl::StrCat(fence);
  if (name == "backfill") return values.backfill ? "1" : "0";
  if (name == "checkpoint") return values.checkpoint;
  if (absl::ConsumePrefix(&name, "param.")) {
    for (const auto& [param, value] : values.params) {
      if (param == name) return value;
    }
  }
  return std::nullopt;
}

absl::Status UnknownName(absl::string_view text, absl::string_view name) {
  if (absl::StartsWith(name, "param.")) {
    return BadInput(text, absl::StrCat("no parameter '", name.substr(6), "' was given"),
                    absl::StrCat("run it with --param ", name.substr(6), "=VALUE"));
  }
  return BadInput(text, absl::StrCat("unknown name '", name, "' in {{ }}"),
                  absl::StrCat("the names are ", kNames, "; write \\{{ for the braces themselves"));
}

struct Piece {
  std::string plain;                      // before the template, escapes taken away
  std::optional<absl::string_view> name;  // none: the text is over
};

// Takes one piece from the front of `rest`; `text` is for the message.
absl::StatusOr<Piece> NextPiece(absl::string_view text, absl::string_view& rest) {
  Piece piece;
  while (!rest.empty()) {
    if (absl::ConsumePrefix(&rest, "\\{{")) {
      piece.plain += "{{";
    } else if (absl::ConsumePrefix(&rest, "{{")) {
      const size_t end = rest.find("}}");
      if (end == absl::string_view::npos) {
        return BadInput(text, "'{{' without '}}'", "close it, or write \\{{ for the braces");
      }
      piece.name = absl::StripAsciiWhitespace(rest.substr(0, end));
      rest.remove_prefix(end + 2);
      return piece;
    } else {
      piece.plain += rest.front();
      rest.remove_prefix(1);
    }
  }
  return piece;
}

}  // namespace

absl::StatusOr<std::string> ExpandTemplate(absl::string_view text, const RunValues& values,
                                           int64_t fence) {
  std::string expanded;
  absl::string_view rest = text;
  while (true) {
    ASSIGN_OR_RETURN(Piece piece, NextPiece(text, rest));
    expanded += piece.plain;
    if (!piece.name) return expanded;
    std::optional<std::string> value = ValueOf(*piece.name, values, fence);
    if (!value) return UnknownName(text, *piece.name);
    if (*piece.name == "biz_date" && value->empty()) {
      return BadInput(text, absl::StrCat("period ", values.period, " has no business date"),
                      "give the job a period of day, week or month, or a biz_date");
    }
    expanded += *value;
  }
}

std::string VariableOfTemplate(absl::string_view name) {
  if (absl::ConsumePrefix(&name, "param.")) return absl::StrCat("MATINS_PARAM_", name);
  return absl::StrCat("MATINS_", absl::AsciiStrToUpper(name));
}

absl::Status CheckShellText(absl::string_view text) {
  // Only names of ours count: `docker ps --format '{{.Names}}'` is the author's own affair.
  RunValues known;
  known.biz_date = "-";
  for (size_t at = text.find("{{"); at != absl::string_view::npos; at = text.find("{{", at + 2)) {
    const size_t end = text.find("}}", at);
    if (end == absl::string_view::npos) break;
    const absl::string_view name = absl::StripAsciiWhitespace(text.substr(at + 2, end - at - 2));
    if (!absl::StartsWith(name, "param.") && !ValueOf(name, known, 0)) continue;
    return BadInput("run.shell", absl::StrCat("{{", name, "}} inside a shell text"),
                    absl::StrCat("write \"$", VariableOfTemplate(name),
                                 "\" there, or use run.command, whose words no shell reads"));
  }
  return absl::OkStatus();
}

}  // namespace matins
