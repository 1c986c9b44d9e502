// The guard's program, carried inside this one, so that one file is all there is to install.
#ifndef MATINS_EXECUTE_GUARD_IMAGE_H_
#define MATINS_EXECUTE_GUARD_IMAGE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace matins {

// The ELF file as built from guard/.
absl::string_view GuardBytes();

// A place from which the guard can be started: sealed anonymous memory, or, where the system does
// not start programs from that, a file.
class GuardImage {
 public:
  // `folder`: private to this user, on a file system that may hold programs; used for the file
  // only.
  static absl::StatusOr<std::unique_ptr<GuardImage>> Open(const std::string& folder);
  ~GuardImage();
  GuardImage(const GuardImage&) = delete;
  GuardImage& operator=(const GuardImage&) = delete;

  // For execve from a process with this one's descriptors.
  const std::string& path() const { return path_; }

 private:
  GuardImage(int fd, std::string path, bool is_file) : fd_(fd), path_(path), is_file_(is_file) {}

  const int fd_;
  const std::string path_;
  const bool is_file_;
};

}  // namespace matins

#endif  // MATINS_EXECUTE_GUARD_IMAGE_H_
