// Rows as a JSON array of objects: the one parameter of a server store's set-based statements.
#ifndef MATINS_STORE_JSON_ROWS_H_
#define MATINS_STORE_JSON_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "job/values.h"

namespace matins {

// How a database writes instants and durations inside JSON.
enum class JsonForm {
  kPostgresql,  // "2026-10-30 01:00:00.000000+00"; "1500000 microseconds"
  kMariadb,     // "2026-10-30 01:00:00.000000", UTC; 1500000
};

// Text that is no UTF-8, or holds a zero byte, has those bytes replaced by '?': a server would
// refuse the whole batch for them.
std::string UsableText(absl::string_view text);

// Texts are made usable; bytes go as hex (AddBytes).
class JsonRows {
 public:
  explicit JsonRows(JsonForm form) : form_(form) {}
  JsonRows& Row();
  JsonRows& Add(absl::string_view column, absl::string_view text);
  JsonRows& AddInt(absl::string_view column, int64_t value);
  JsonRows& AddNumber(absl::string_view column, double value);
  JsonRows& AddBool(absl::string_view column, bool value);
  JsonRows& AddTime(absl::string_view column, absl::Time t);  // infinite: null
  JsonRows& AddDay(absl::string_view column, absl::CivilDay day);
  JsonRows& AddSpan(absl::string_view column, absl::Duration d);  // infinite: null
  JsonRows& AddBytes(absl::string_view column, absl::string_view bytes);
  JsonRows& AddKey(const PeriodKey& key);     // job, period
  JsonRows& AddTicket(const Ticket& ticket);  // job, period, gen, fence, nonce
  std::string Take();
  // The same as several arrays of about `bytes` each, for a server that limits its packets; none
  // where there are no rows.
  std::vector<std::string> TakeParts(size_t bytes);
  bool empty() const { return rows_ == 0; }

 private:
  void Name(absl::string_view column);
  JsonForm form_;
  std::string text_ = "[";
  std::vector<size_t> starts_;  // of each row's object in text_
  int rows_ = 0;
  bool first_ = true;
};

// A JSON array of strings, each made usable.
std::string JsonStrings(const std::vector<std::string>& strings);
// "2026-10-30 01:00:00.000000" in UTC.
std::string UtcText(absl::Time t);

}  // namespace matins

#endif  // MATINS_STORE_JSON_ROWS_H_
