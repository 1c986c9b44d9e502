#include "backends/backends.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  matins::OwnTheProcess();
  return matins::RunCommandLine(argc, argv);
}
