#include "store/json_rows.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/time.h"

namespace matins {
namespace {

// The length of the UTF-8 sequence at `text[i]`, or 0 where there is none that a server takes.
size_t SequenceLength(absl::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(i);
  if (lead == 0) return 0;
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xc2 && lead <= 0xdf   ? 2
                        : lead >= 0xe0 && lead <= 0xef ? 3
                        : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                       : 0;
  if (length == 0 || i + length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(i + 1);
  if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
      (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f)) {
    return 0;
  }
  return length;
}

void AppendJsonText(std::string& out, absl::string_view text) {
  out += '"';
  for (const char c : UsableText(text)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

std::string UtcText(absl::Time t) {
  return absl::FormatTime("%E4Y-%m-%d %H:%M:%E6S", t, absl::UTCTimeZone());
}

std::string UsableText(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = SequenceLength(text, i);
    if (length == 0) {
      out += '?';
      ++i;
    } else {
      absl::StrAppend(&out, text.substr(i, length));
      i += length;
    }
  }
  return out;
}

JsonRows& JsonRows::Row() {
  if (rows_++ > 0) text_ += "},";
  starts_.push_back(text_.size());
  text_ += '{';
  first_ = true;
  return *this;
}
void JsonRows::Name(absl::string_view column) {
  if (!first_) text_ += ',';
  first_ = false;
  absl::StrAppend(&text_, "\"", column, "\":");
}
JsonRows& JsonRows::Add(absl::string_view column, absl::string_view text) {
  Name(column);
  AppendJsonText(text_, text);
  return *this;
}
JsonRows& JsonRows::AddInt(absl::string_view column, int64_t value) {
  Name(column);
  absl::StrAppend(&text_, value);
  return *this;
}
JsonRows& JsonRows::AddNumber(absl::string_view column, double value) {
  Name(column);
  // As text: JSON knows no NaN, a database may.
  absl::StrAppendFormat(&text_, "\"%.17g\"", value);
  return *this;
}
JsonRows& JsonRows::AddBool(absl::string_view column, bool value) {
  Name(column);
  text_ += value ? "true" : "false";
  return *this;
}
JsonRows& JsonRows::AddTime(absl::string_view column, absl::Time t) {
  Name(column);
  if (t == absl::InfinitePast() || t == absl::InfiniteFuture()) {
    text_ += "null";
  } else {
    absl::StrAppend(&text_, "\"", UtcText(t), form_ == JsonForm::kPostgresql ? "+00\"" : "\"");
  }
  return *this;
}
JsonRows& JsonRows::AddDay(absl::string_view column, absl::CivilDay day) {
  Name(column);
  absl::StrAppend(&text_, "\"", FormatDay(day), "\"");
  return *this;
}
JsonRows& JsonRows::AddSpan(absl::string_view column, absl::Duration d) {
  Name(column);
  if (d == absl::InfiniteDuration()) {
    text_ += "null";
  } else if (form_ == JsonForm::kPostgresql) {
    absl::StrAppend(&text_, "\"", absl::ToInt64Microseconds(d), " microseconds\"");
  } else {
    absl::StrAppend(&text_, absl::ToInt64Microseconds(d));
  }
  return *this;
}
JsonRows& JsonRows::AddBytes(absl::string_view column, absl::string_view bytes) {
  Name(column);
  absl::StrAppend(&text_, "\"", absl::BytesToHexString(bytes), "\"");
  return *this;
}
JsonRows& JsonRows::AddKey(const PeriodKey& key) {
  return Add("job", key.job).Add("period", key.period);
}
JsonRows& JsonRows::AddTicket(const Ticket& ticket) {
  return AddKey(ticket.key)
      .AddInt("gen", ticket.generation)
      .AddInt("fence", ticket.fence)
      .AddInt("nonce", ticket.nonce);
}
std::string JsonRows::Take() {
  text_ += rows_ == 0 ? "]" : "}]";
  return std::move(text_);
}
std::vector<std::string> JsonRows::TakeParts(size_t bytes) {
  std::vector<std::string> parts;
  const std::string text = Take();
  for (size_t first = 0; first < starts_.size();) {
    size_t next = first + 1;
    while (next < starts_.size() && starts_[next] - starts_[first] < bytes) ++next;
    // Up to the comma before the next row, or to the array's own end.
    const size_t end = next < starts_.size() ? starts_[next] - 1 : text.size() - 1;
    parts.push_back(absl::StrCat("[", text.substr(starts_[first], end - starts_[first]), "]"));
    first = next;
  }
  return parts;
}

std::string JsonStrings(const std::vector<std::string>& strings) {
  std::string out = "[";
  for (size_t i = 0; i < strings.size(); ++i) {
    if (i > 0) out += ',';
    AppendJsonText(out, strings[i]);
  }
  return out + "]";
}

}  // namespace matins
