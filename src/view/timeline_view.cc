#include "view/timeline_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/time.h"
#include "view/table.h"

namespace matins {
namespace {

constexpr absl::Time kPast = absl::InfinitePast();

std::string Clock(absl::Time t) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%E3S", t, absl::UTCTimeZone());
}

// "+1.25s", to the millisecond below a minute.
std::string After(absl::Duration d) {
  const absl::Duration unit = d < absl::Minutes(1)  ? absl::Milliseconds(1)
                              : d < absl::Hours(24) ? absl::Seconds(1)
                                                    : absl::Minutes(1);
  const absl::Duration cut = absl::Trunc(d, unit);
  return cut == absl::ZeroDuration() ? "+0" : absl::StrCat("+", absl::FormatDuration(cut));
}

struct Scale {
  absl::Time from = absl::InfiniteFuture(), to = kPast;
  int cells = 1;

  void Add(absl::Time t) {
    if (t == kPast) return;
    from = std::min(from, t);
    to = std::max(to, t);
  }
  int CellOf(absl::Time t) const {
    if (to <= from) return 0;
    const double part = absl::FDivDuration(std::clamp(t, from, to) - from, to - from);
    return std::min(cells - 1, static_cast<int>(part * (cells - 1) + 0.5));
  }
};

std::string Drawn(const TimelineBar& bar, const Scale& scale) {
  std::string cells(scale.cells, ' ');
  if (!bar.marks.empty()) {
    const int begin = scale.CellOf(bar.marks.front().at);
    const int end = scale.CellOf(bar.marks.back().at);
    for (int i = begin; i <= end; ++i) cells[i] = '-';
  }
  if (bar.lease_from != kPast) {
    const int end = scale.CellOf(std::max(bar.lease_from, bar.lease_until));
    for (int i = scale.CellOf(bar.lease_from); i <= end; ++i) cells[i] = '=';
  }
  // Marks that fall together stand side by side, in their order, as long as there is room.
  int next = 0;
  for (size_t i = 0; i < bar.marks.size(); ++i) {
    const int left = static_cast<int>(bar.marks.size() - i);
    int cell = std::max(next, scale.CellOf(bar.marks[i].at));
    cell = std::max(0, std::min(cell, scale.cells - left));
    cells[cell] = bar.marks[i].letter;
    next = cell + 1;
  }
  return cells;
}

void AppendLine(std::string& text, absl::string_view line, size_t width) {
  absl::StrAppend(&text, line.substr(0, width), "\n");
}

// `words` after one another, on as many lines as they need.
void AppendWords(std::string& text, const std::vector<std::string>& words, size_t width) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty() && line.size() + 2 + word.size() > width) {
      AppendLine(text, line, width);
      line.clear();
    }
    absl::StrAppend(&line, "  ", word);
  }
  if (!line.empty()) AppendLine(text, line, width);
}

std::vector<std::string> Words(absl::string_view sentence) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : sentence) {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, ""));
    }
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

void AppendNote(std::string& text, absl::string_view note, size_t width) {
  std::string line = " ";
  for (const std::string& word : Words(note)) {
    if (line.size() > 2 && line.size() + 1 + word.size() > width) {
      AppendLine(text, line, width);
      line = "   ";
    }
    absl::StrAppend(&line, " ", word);
  }
  AppendLine(text, line, width);
}

}  // namespace

std::string TimelineText(absl::string_view title, absl::Span<const TimelineBar> bars, int width) {
  const auto most = static_cast<size_t>(std::max(width, 40));
  Scale scale;
  scale.cells = static_cast<int>(most) - 4;
  for (const TimelineBar& bar : bars) {
    for (const TimelineMark& mark : bar.marks) scale.Add(mark.at);
    scale.Add(bar.lease_from);
    scale.Add(bar.lease_until);
  }
  std::string text;
  AppendLine(text, title, most);
  if (scale.to == kPast) return text;
  AppendLine(text,
             absl::StrCat("  from ", Clock(scale.from), " UTC, ",
                          After(scale.to - scale.from).substr(1), " in all"),
             most);
  for (const TimelineBar& bar : bars) {
    AppendLine(text, bar.title, most);
    AppendLine(text, absl::StrCat(" |", Drawn(bar, scale), "|"), most);
    std::vector<std::string> words;
    for (const TimelineMark& mark : bar.marks) {
      const bool first = words.empty();
      words.push_back(
          absl::StrCat(std::string(1, mark.letter), " ", mark.name, " ",
                       first ? absl::FormatTime("%H:%M:%E3S", mark.at, absl::UTCTimeZone())
                             : After(mark.at - bar.marks.front().at)));
    }
    AppendWords(text, words, most);
    for (const std::string& note : bar.notes) AppendNote(text, Harmless(note, false), most);
  }
  return text;
}

}  // namespace matins
