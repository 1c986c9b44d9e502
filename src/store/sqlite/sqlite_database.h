// SQLite as a Database: one file on a local disk, for one machine.
#ifndef MATINS_STORE_SQLITE_SQLITE_DATABASE_H_
#define MATINS_STORE_SQLITE_SQLITE_DATABASE_H_

#include <memory>
#include <string>

#include "store/database.h"

namespace matins::sqlite {

// SQLite's count of its memory is the whole process's: before its first connection, or it has no
// effect.
void CountNoMemory();

// Opens nothing yet. `path` is made by Migrate with mode 0600.
std::unique_ptr<Database> NewDatabase(std::string path, DatabaseOptions options);

}  // namespace matins::sqlite

#endif  // MATINS_STORE_SQLITE_SQLITE_DATABASE_H_
