// The schema's steps, one string of SQL each; step N makes schema version N.
#ifndef MATINS_STORE_POSTGRESQL_SCHEMA_SQL_H_
#define MATINS_STORE_POSTGRESQL_SCHEMA_SQL_H_

#include <string>
#include <vector>

namespace matins::postgresql {

// "@." stands for the schema. Step 1 is for a schema without a job_watermark table, or with one of
// the four well-known columns.
const std::vector<std::string>& TakeOverWatermark();  // before step 1, where that table exists
const std::vector<const std::vector<std::string>*>& SchemaSteps();

// What `journal: full` adds, and takes away again.
extern const char kEnableJournal[];
extern const char kDisableJournal[];

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_SCHEMA_SQL_H_
