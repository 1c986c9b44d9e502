// matins lab ...: hands over to the lab, which is Python and shares no code with what it judges.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "cli/commands.h"

#ifndef MATINS_LAB
#define MATINS_LAB 0
#endif

namespace matins {
namespace {

namespace fs = std::filesystem;

// Installed beside the program's prefix; in the source tree above the build's folder.
absl::StatusOr<fs::path> LabFolder(const fs::path& program) {
  std::error_code none;
  for (const char* place : {"../share/matins/lab", "../../lab"}) {
    const fs::path folder = program.parent_path() / place;
    if (fs::exists(folder / "__main__.py", none)) return fs::weakly_canonical(folder, none);
  }
  return BadInput("lab", "is not beside this program (share/matins/lab)",
                  "install it: cmake --install build/release");
}

absl::Status HandOver(const std::vector<std::string>& words) {
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  ASSIGN_OR_RETURN(const fs::path folder, LabFolder(program));
  std::vector<std::string> told = {"python3", "-B", folder.string()};
  told.insert(told.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : told) argv.push_back(word.data());
  argv.push_back(nullptr);
  setenv("MATINS_BINARY", program.c_str(), 1);
  setenv("MATINS_LAB_BUILD", MATINS_LAB ? "1" : "0", 1);
  execvp(argv[0], argv.data());
  return BadInput("lab", "needs Python 3.11 or newer, and python3 cannot be started",
                  "apt-get install python3");
}

}  // namespace

void AddLabCommand(CLI::App& app, Shell& shell) {
  CLI::App& command = *app.add_subcommand(
      "lab", "prove the promises on real processes and servers, and keep the evidence");
  command.set_help_flag();
  command.prefix_command();
  shell.Does(command, [&command] { return HandOver(command.remaining()); });
}

}  // namespace matins
