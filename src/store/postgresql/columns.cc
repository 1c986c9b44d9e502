#include "store/postgresql/columns.h"

#include <endian.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "store/postgresql/sql.h"

namespace matins::postgresql {
namespace {

constexpr int64_t kEpoch2000Us = 946'684'800'000'000;

template <typename T>
void Put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}
void Put32(std::string& out, uint32_t value) { Put(out, htobe32(value)); }

std::string Bytes64(int64_t value) {
  std::string out;
  Put(out, htobe64(static_cast<uint64_t>(value)));
  return out;
}

struct TypeOf {
  const char* name;
  uint32_t oid;
};

}  // namespace

ColumnRows& ColumnRows::Row() {
  ++rows_;
  next_ = 0;
  return *this;
}

ColumnRows::Column& ColumnRows::Find(absl::string_view name, Type type) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[(next_ + i) % columns_.size()];
    if (column.name != name) continue;
    next_ = (next_ + i + 1) % columns_.size();
    while (column.rows < rows_ - 1) AppendNull(column);
    return column;
  }
  Column& column = columns_.emplace_back();
  column.name = std::string(name);
  column.type = type;
  while (column.rows < rows_ - 1) AppendNull(column);
  next_ = 0;
  return column;
}

// Compares the element that begins at `from` with the first.
void ColumnRows::Note(Column& column, size_t from) {
  if (column.rows++ == 0) {
    column.first = column.data.size();
  } else if (column.constant) {
    const absl::string_view data = column.data;
    column.constant = data.substr(from) == data.substr(0, column.first);
  }
}

void ColumnRows::Append(Column& column, absl::string_view element) {
  const size_t from = column.data.size();
  Put32(column.data, static_cast<uint32_t>(element.size()));
  column.data.append(element.data(), element.size());
  Note(column, from);
}

void ColumnRows::AppendNull(Column& column) {
  const size_t from = column.data.size();
  Put32(column.data, 0xffffffff);
  column.nulls = true;
  Note(column, from);
}

ColumnRows& ColumnRows::Add(absl::string_view column, absl::string_view text) {
  Append(Find(column, Type::kText), UsableText(text));
  return *this;
}
ColumnRows& ColumnRows::AddInt(absl::string_view column, int64_t value) {
  Append(Find(column, Type::kInt), Bytes64(value));
  return *this;
}
ColumnRows& ColumnRows::AddInt(absl::string_view column, std::optional<int> value) {
  if (value) return AddInt(column, static_cast<int64_t>(*value));
  AppendNull(Find(column, Type::kInt));
  return *this;
}
ColumnRows& ColumnRows::AddNumber(absl::string_view column, double value) {
  int64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  Append(Find(column, Type::kNumber), Bytes64(bits));
  return *this;
}
ColumnRows& ColumnRows::AddBool(absl::string_view column, bool value) {
  Append(Find(column, Type::kBool), absl::string_view(value ? "\1" : "\0", 1));
  return *this;
}
ColumnRows& ColumnRows::AddTime(absl::string_view column, absl::Time t) {
  Column& found = Find(column, Type::kTime);
  if (t == absl::InfinitePast() || t == absl::InfiniteFuture()) {
    AppendNull(found);
  } else {
    Append(found, Bytes64(absl::ToUnixMicros(t) - kEpoch2000Us));
  }
  return *this;
}
ColumnRows& ColumnRows::AddDay(absl::string_view column, absl::CivilDay day) {
  std::string bytes;
  Put32(bytes, static_cast<uint32_t>(day - absl::CivilDay(2000, 1, 1)));
  Append(Find(column, Type::kDay), bytes);
  return *this;
}
ColumnRows& ColumnRows::AddSpan(absl::string_view column, absl::Duration d) {
  Column& found = Find(column, Type::kSpan);
  if (d == absl::InfiniteDuration()) {
    AppendNull(found);
  } else {
    // Microseconds, then days and months.
    std::string bytes = Bytes64(absl::ToInt64Microseconds(d));
    Put32(bytes, 0);
    Put32(bytes, 0);
    Append(found, bytes);
  }
  return *this;
}
ColumnRows& ColumnRows::AddBytes(absl::string_view column, absl::string_view bytes) {
  Append(Find(column, Type::kBytes), bytes);
  return *this;
}
ColumnRows& ColumnRows::AddTid(absl::string_view column, absl::string_view bytes) {
  Append(Find(column, Type::kTid), bytes);
  return *this;
}
ColumnRows& ColumnRows::AddKey(const PeriodKey& key) {
  return Add("job", key.job).Add("period", key.period);
}
ColumnRows& ColumnRows::AddTicket(const Ticket& ticket) {
  return AddKey(ticket.key)
      .AddInt("gen", ticket.generation)
      .AddInt("fence", ticket.fence)
      .AddInt("nonce", ticket.nonce);
}

std::string ColumnRows::Take(std::vector<Parameter>& params) {
  static constexpr TypeOf kTypes[] = {{"text", 25},       {"bigint", 20},        {"float8", 701},
                                      {"boolean", 16},    {"timestamptz", 1184}, {"date", 1082},
                                      {"interval", 1186}, {"bytea", 17},         {"tid", 27}};
  std::string select, arrays, names;
  bool first = true;
  for (Column& column : columns_) {
    while (column.rows < rows_) AppendNull(column);
    const TypeOf type = kTypes[static_cast<int>(column.type)];
    absl::StrAppend(&select, select.empty() ? "" : ", ");
    // The first is always an array: it says how many rows there are.
    if (column.constant && !first) {
      std::optional<std::string> value;
      if (!column.nulls) value = column.data.substr(4, column.first - 4);
      params.push_back(Parameter::Binary(std::move(value)));
      absl::StrAppend(&select, "$", params.size(), "::", type.name, " as ", column.name);
      continue;
    }
    std::string array;
    Put32(array, 1);
    Put32(array, column.nulls ? 1 : 0);
    Put32(array, type.oid);
    Put32(array, static_cast<uint32_t>(rows_));
    Put32(array, 1);
    array += column.data;
    params.push_back(Parameter::Binary(std::move(array)));
    absl::StrAppend(&select, "a.", column.name);
    // Behind a select the server does not see how long the array is. As it is mostly one element, a
    // plan for just that array seems cheaper than one for any, and would be made anew each time.
    absl::StrAppend(&arrays, first ? "" : ", ", "(select $", params.size(), "::", type.name, "[])");
    absl::StrAppend(&names, first ? "" : ", ", column.name);
    first = false;
  }
  columns_.clear();
  rows_ = 0;
  return absl::StrCat("select ", select, " from unnest(", arrays, ") as a(", names, ")");
}

}  // namespace matins::postgresql
