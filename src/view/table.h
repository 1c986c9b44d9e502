// What commands print: the same rows as an aligned table for people or as JSON for programs.
#ifndef MATINS_VIEW_TABLE_H_
#define MATINS_VIEW_TABLE_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace matins {

// A table whose first row is its head. Cells are shown with control and escape characters made
// harmless.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : head_(std::move(head)) {}
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  // Columns two blanks apart, ends of lines trimmed.
  std::string Text() const;

 private:
  std::vector<std::string> head_;
  std::vector<std::vector<std::string>> rows_;
};

// `text` with everything that a terminal would act upon, and bytes that are no UTF-8, replaced; new
// lines and tabs stay where `lines` is true. A run's output must not be able to speak to the
// terminal of whoever reads it.
std::string Harmless(absl::string_view text, bool lines);

// `bytes` as valid UTF-8 for JSON: what is not becomes U+FFFD.
std::string ValidUtf8(absl::string_view bytes);

}  // namespace matins

#endif  // MATINS_VIEW_TABLE_H_
