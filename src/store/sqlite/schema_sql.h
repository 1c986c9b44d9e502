// The text of the schema's steps.
#ifndef MATINS_STORE_SQLITE_SCHEMA_SQL_H_
#define MATINS_STORE_SQLITE_SCHEMA_SQL_H_

namespace matins::sqlite {

extern const char kWatermarkTable[];
extern const char kOtherTables[];
extern const char kIndexes[];
extern const char kTriggers[];
// Step 2.
extern const char kFewerIndexes[];
// Step 3.
extern const char kAuditTable[];
// Step 4.
extern const char kLimits[];
// Step 5.
extern const char kDrills[];
// Step 6.
extern const char kAlerts[];
// Step 7.
extern const char kBackfills[];
// Step 8.
extern const char kRenewals[];
// Steps 4 and 9.
extern const char kDeletedTrigger[];

// What `journal: full` adds, and takes away again; either may be run again.
extern const char kEnableJournal[];
extern const char kDisableJournal[];

}  // namespace matins::sqlite

#endif  // MATINS_STORE_SQLITE_SCHEMA_SQL_H_
