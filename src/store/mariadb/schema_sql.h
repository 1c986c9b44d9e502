// The schema's steps. Each can be taken again after a crash between two: nothing of it is undone by
// a rollback, because MariaDB commits each definition by itself.
#ifndef MATINS_STORE_MARIADB_SCHEMA_SQL_H_
#define MATINS_STORE_MARIADB_SCHEMA_SQL_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace matins::mariadb {

// job_watermark's columns beside the four well-known ones and `period`: name and definition.
const std::vector<std::pair<std::string, std::string>>& WatermarkColumns();
// Its keys, the primary one aside: name and definition ("UNIQUE KEY name (...)").
const std::vector<std::pair<std::string, std::string>>& WatermarkKeys();
// The four well-known columns as they must be: "job_name ... NOT NULL".
const std::vector<std::string>& KnownColumns();
extern const char kPeriodColumn[];
// Where there is no such table.
std::string CreateWatermark();

// All other tables, functions and triggers, and the store's first facts.
const std::vector<std::string>& CreateRest();

// What `journal: full` adds, and takes away again.
const std::vector<std::string>& EnableJournal();
const std::vector<std::string>& DisableJournal();

}  // namespace matins::mariadb

#endif  // MATINS_STORE_MARIADB_SCHEMA_SQL_H_
