#include "job/files.h"

#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace matins {
namespace {

constexpr size_t kMostBytes = size_t{16} << 20;

class DiskFiles final : public FileSource {
 public:
  absl::StatusOr<std::string> Read(const std::string& path) override {
    using Handle = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
    const auto keep_open = [](std::FILE*) { return 0; };
    Handle file = path == "-" ? Handle(stdin, keep_open)
                              : Handle(std::fopen(path.c_str(), "re"), &std::fclose);
    if (file == nullptr) return Failure(path, errno);
    std::string text;
    char buffer[1 << 16];
    while (const size_t got = std::fread(buffer, 1, sizeof(buffer), file.get())) {
      text.append(buffer, got);
      if (text.size() > kMostBytes) {
        return BadInput(path, "it is larger than 16 MiB", "is it the right file?");
      }
    }
    if (std::ferror(file.get()) != 0) return Failure(path, errno);
    return text;
  }

  std::vector<std::string> Glob(const std::string& pattern) override {
    glob_t found{};
    std::vector<std::string> paths;
    if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
      paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    }
    ::globfree(&found);
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  std::string Canonical(const std::string& path) override {
    std::error_code error;
    const std::filesystem::path canonical = std::filesystem::canonical(path, error);
    return error ? path : canonical.string();
  }

 private:
  static absl::Status Failure(const std::string& path, int error) {
    return absl::ErrnoToStatus(error, absl::StrCat("cannot read ", path));
  }
};

}  // namespace

FileSource& SystemFiles() {
  static auto& files = *new DiskFiles;
  return files;
}

absl::StatusOr<std::string> MemoryFiles::Read(const std::string& path) {
  const auto found = files_.find(path);
  if (found == files_.end()) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  return found->second;
}

std::vector<std::string> MemoryFiles::Glob(const std::string& pattern) {
  std::vector<std::string> paths;
  for (const auto& [path, text] : files_) {
    if (::fnmatch(pattern.c_str(), path.c_str(), FNM_PATHNAME) == 0) paths.push_back(path);
  }
  return paths;
}

std::string MemoryFiles::Canonical(const std::string& path) { return path; }

std::string BesideFile(absl::string_view file, absl::string_view path) {
  const size_t slash = file.rfind('/');
  if (absl::StartsWith(path, "/") || slash == absl::string_view::npos) return std::string(path);
  return absl::StrCat(file.substr(0, slash + 1), path);
}

}  // namespace matins
