#include "job/key_template.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/time.h"
#include "job/nearest.h"
#include "job/sha256.h"

namespace matins {
namespace {

constexpr size_t kMostTemplate = 200;
constexpr size_t kMostKey = 200;
constexpr size_t kKeptOfLong = 160;

struct Piece {
  std::string plain;  // stands before the name
  std::string name;   // empty: the end
  std::string form;   // of a date; empty: none
};

absl::StatusOr<std::vector<Piece>> Split(absl::string_view text) {
  std::vector<Piece> pieces;
  absl::string_view rest = text;
  while (true) {
    const size_t open = rest.find_first_of("{}");
    Piece piece;
    piece.plain = std::string(rest.substr(0, open));
    if (open == absl::string_view::npos) {
      pieces.push_back(std::move(piece));
      return pieces;
    }
    const absl::string_view close = absl::StartsWith(rest.substr(open), "{{") ? "}}" : "}";
    const size_t end = rest.find(close, open);
    const absl::string_view inside = end == absl::string_view::npos
                                         ? absl::string_view()
                                         : absl::StripAsciiWhitespace(rest.substr(
                                               open + close.size(), end - open - close.size()));
    if (rest[open] == '}' || inside.empty() || absl::StrContains(inside, "{")) {
      return BadInput(absl::StrCat("key '", text, "'"), "its braces do not match",
                      "write a name in them, as in settle-{{biz_date}}");
    }
    const size_t colon = inside.find(':');
    piece.name = std::string(inside.substr(0, colon));
    if (colon != absl::string_view::npos) piece.form = std::string(inside.substr(colon + 1));
    pieces.push_back(std::move(piece));
    rest.remove_prefix(end + close.size());
  }
}

// ISO 8601: the week of a day is that of its Thursday.
absl::CivilDay ThursdayOf(absl::CivilDay day) {
  return absl::NextWeekday(absl::PrevWeekday(day + 1, absl::Weekday::monday) - 1,
                           absl::Weekday::thursday);
}

int IsoWeekday(absl::CivilDay day) { return static_cast<int>(absl::GetWeekday(day)) + 1; }

std::optional<std::string> DateLetter(char letter, absl::CivilDay day) {
  switch (letter) {
    case 'Y':
      return absl::StrFormat("%04d", day.year());
    case 'm':
      return absl::StrFormat("%02d", day.month());
    case 'd':
      return absl::StrFormat("%02d", day.day());
    case 'j':
      return absl::StrFormat("%03d", absl::GetYearDay(day));
    case 'V':
      return absl::StrFormat("%02d", (absl::GetYearDay(ThursdayOf(day)) + 6) / 7);
    case 'G':
      return absl::StrFormat("%04d", ThursdayOf(day).year());
    case 'u':
      return absl::StrCat(IsoWeekday(day));
    case '%':
      return "%";
    default:
      return std::nullopt;
  }
}

absl::StatusOr<std::string> DateText(absl::string_view form, absl::CivilDay day) {
  if (form.empty()) return FormatDay(day);
  std::string text;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '%') {
      text += form[i];
      continue;
    }
    const std::optional<std::string> part =
        ++i < form.size() ? DateLetter(form[i], day) : std::nullopt;
    if (!part) {
      return BadInput("", absl::StrCat("the date form '", form, "' has an unknown % letter"),
                      "take %Y %m %d %j %G %V %u and %%");
    }
    text += *part;
  }
  return text;
}

absl::StatusOr<std::string> ValueOf(const Piece& piece, const KeyValues& values) {
  if (piece.name == "biz_date") return DateText(piece.form, values.biz_date);
  if (!piece.form.empty()) {
    return BadInput("", absl::StrCat("'", piece.name, "' takes no form after a colon"),
                    "only biz_date does");
  }
  if (piece.name == "job") return std::string(values.job);
  if (piece.name == "tenant") return std::string(values.tenant);
  if (piece.name == "period") return std::string(values.period);
  const std::vector<std::string> names = {"job", "tenant", "period", "biz_date"};
  return BadInput("", absl::StrCat("unknown name '", piece.name, "' in the key"),
                  MendWord(piece.name, names));
}

const std::vector<std::string>& RunNames() {
  static const auto& names = *new std::vector<std::string>{
      "job",        "tenant",  "period", "biz_date", "window_start", "window_end", "scheduled_for",
      "generation", "attempt", "run_id", "fence",    "backfill",     "checkpoint", "param.NAME"};
  return names;
}

bool IsRunName(absl::string_view name) {
  if (absl::StartsWith(name, "param.")) return name.size() > 6;
  return std::find(RunNames().begin(), RunNames().end(), name) != RunNames().end();
}

absl::string_view NameAt(absl::string_view text, size_t open, size_t end) {
  return absl::StripAsciiWhitespace(text.substr(open + 2, end - open - 2));
}

}  // namespace

absl::StatusOr<std::string> ExpandKey(absl::string_view key_template, const KeyValues& values) {
  ASSIGN_OR_RETURN(const std::vector<Piece> pieces, Split(key_template));
  std::string key;
  for (const Piece& piece : pieces) {
    key += piece.plain;
    if (piece.name.empty()) continue;
    ASSIGN_OR_RETURN(const std::string value, ValueOf(piece, values));
    key += value;
  }
  if (key.size() <= kMostKey) return key;
  return absl::StrFormat("%s...%016x", key.substr(0, kKeptOfLong), Fnv1a(key));
}

absl::Status CheckKey(absl::string_view key_template) {
  if (key_template.size() > kMostTemplate) {
    return BadInput("key", absl::StrCat("it has ", key_template.size(), " bytes"),
                    absl::StrCat("take ", kMostTemplate, " at most"));
  }
  const bool shown = std::all_of(key_template.begin(), key_template.end(),
                                 [](unsigned char c) { return c >= ' ' && c != 0x7F; });
  if (!shown) return BadInput("key", "it has a control character", "take it out");
  if (key_template != absl::StripAsciiWhitespace(key_template)) {
    return BadInput(absl::StrCat("key '", key_template, "'"), "a blank begins or ends it",
                    "take the blank out");
  }
  return ExpandKey(key_template, {"job", "tenant", "2026-01-01", absl::CivilDay(2026, 1, 1)})
      .status();
}

std::string MaskKey(Mask mask, absl::string_view key) {
  if (mask == Mask::kNone) return std::string(key);
  return absl::StrCat("hash/", Sha256Hex(absl::StrCat("matins lock key ", key)).substr(0, 32));
}

absl::StatusOr<std::string> LockKeyOf(const Job& job, absl::string_view period,
                                      absl::CivilDay biz_date) {
  if (job.lock.provider == LockProvider::kRedis && IsMutant(Mutant::kDoorIsTheLock)) {
    return std::string();
  }
  switch (job.lock.scope) {
    case LockScope::kJob:
      return absl::StrCat("job/", job.name);
    case LockScope::kPeriod:
      return std::string();
    case LockScope::kKey:
      break;
  }
  ASSIGN_OR_RETURN(const std::string key,
                   ExpandKey(job.lock.key, {job.name, job.tenant, period, biz_date}));
  return MaskKey(job.mask, key);
}

bool KeyNames(absl::string_view key_template, absl::string_view name) {
  const absl::StatusOr<std::vector<Piece>> pieces = Split(key_template);
  return pieces.ok() && std::any_of(pieces->begin(), pieces->end(),
                                    [&](const Piece& piece) { return piece.name == name; });
}

bool KeyNamesPeriod(absl::string_view key_template) {
  return KeyNames(key_template, "period") || KeyNames(key_template, "biz_date");
}

absl::Status CheckRunTemplate(absl::string_view text) {
  for (size_t open = text.find("{{"); open != absl::string_view::npos;) {
    size_t end = open + 2;
    if (open == 0 || text[open - 1] != '\\') {
      end = text.find("}}", open);
      if (end == absl::string_view::npos) {
        return BadInput("", absl::StrCat("'{{' without '}}' in '", text, "'"),
                        "close it, or write \\{{ for the braces themselves");
      }
      const absl::string_view name = NameAt(text, open, end);
      if (!IsRunName(name)) {
        return BadInput(
            "", absl::StrCat("unknown name '", name, "' in '", text, "'"),
            absl::StrCat(MendWord(name, RunNames()), "; write \\{{ for the braces themselves"));
      }
    }
    open = text.find("{{", end);
  }
  return absl::OkStatus();
}

absl::Status CheckShellTemplate(absl::string_view text) {
  for (size_t open = text.find("{{"); open != absl::string_view::npos;
       open = text.find("{{", open + 2)) {
    const size_t end = text.find("}}", open);
    if (end == absl::string_view::npos) break;
    const absl::string_view name = NameAt(text, open, end);
    if (!IsRunName(name)) continue;
    const std::string variable = absl::AsciiStrToUpper(name);
    return BadInput(
        "", absl::StrCat("'{{", name, "}}' in a shell text"),
        absl::StrCat(
            "write \"$MATINS_",
            absl::StartsWith(name, "param.") ? absl::StrCat("PARAM_", name.substr(6)) : variable,
            "\": a value spliced into a program is a program"));
  }
  return absl::OkStatus();
}

}  // namespace matins
