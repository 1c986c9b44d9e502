// Where job files come from: the disk, or a table in tests.
#ifndef MATINS_JOB_FILES_H_
#define MATINS_JOB_FILES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace matins {

class FileSource {
 public:
  virtual ~FileSource() = default;
  // At most 16 MiB. NotFound, PermissionDenied or InvalidArgument (a folder, too large), naming the
  // path.
  virtual absl::StatusOr<std::string> Read(const std::string& path) = 0;
  // The files that match a shell pattern (* ? [a-z]), sorted by bytes; none: no match. A pattern
  // without wildcards answers itself where that file is there.
  virtual std::vector<std::string> Glob(const std::string& pattern) = 0;
  // One name for each file, however it is written; `path` itself where the file is not there.
  virtual std::string Canonical(const std::string& path) = 0;
};

// The disk. "-" is standard input.
FileSource& SystemFiles();

// Files in memory, by path.
class MemoryFiles final : public FileSource {
 public:
  explicit MemoryFiles(std::map<std::string, std::string> files) : files_(std::move(files)) {}
  absl::StatusOr<std::string> Read(const std::string& path) override;
  std::vector<std::string> Glob(const std::string& pattern) override;
  std::string Canonical(const std::string& path) override;

 private:
  std::map<std::string, std::string> files_;
};

// `path` as seen from the folder of `file`.
std::string BesideFile(absl::string_view file, absl::string_view path);

}  // namespace matins

#endif  // MATINS_JOB_FILES_H_
