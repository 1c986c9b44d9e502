#include "cli/commands.h"

int main(int argc, char** argv) { return matins::RunCommandLine(argc, argv); }
