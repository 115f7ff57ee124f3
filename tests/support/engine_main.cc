// SPDX-License-Identifier: Apache-2.0
// The reference engine as a program of its own, for tests that need a process.
#include <CLI/CLI.hpp>

#include "tools/commands/engine.h"

int main(int argc, char** argv) {
  CLI::App app("reference engine");
  int exitCode = 0;
  pushrod::tools::addEngineCommand(app, exitCode);
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  return exitCode;
}
