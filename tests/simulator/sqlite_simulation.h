// A fresh SQLite file for each simulation, with the SQL that ships.
#ifndef MATINS_TESTS_SIMULATOR_SQLITE_SIMULATION_H_
#define MATINS_TESTS_SIMULATOR_SQLITE_SIMULATION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lab/simulator.h"

namespace matins {

// `path` must not exist; it stays when the database is destroyed, as evidence. On a file system in
// memory a sync costs nothing, and nothing else is different.
SimDatabaseMaker SqliteAt(std::string path);

// A folder in memory where there is one, else in the folder for temporary files; removed with all
// that lies in it when destroyed.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace matins

#endif  // MATINS_TESTS_SIMULATOR_SQLITE_SIMULATION_H_
