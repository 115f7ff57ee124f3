// SPDX-License-Identifier: Apache-2.0
#include "tools/program.h"

#include <exception>
#include <sstream>
#include <xxhash.h>

#include <CLI/CLI.hpp>

#include <pushrod/version.h>

#include "tools/build_info.h"
#include "tools/commands/config.h"
#include "tools/commands/demo.h"
#include "tools/commands/drill.h"
#include "tools/commands/engine.h"
#include "tools/commands/engines.h"
#include "tools/commands/explain.h"
#include "tools/commands/push.h"
#include "tools/commands/status.h"
#include "tools/console.h"
#include "tools/exit_code.h"

namespace pushrod::tools {
namespace {

/// Help and version texts are answers; everything else that the parser throws is a usage error.
int usage(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {
    std::ostringstream text;
    static_cast<void>(app.exit(error, text, text));
    return printAnswer(text.str());
  }
  printError(std::string(error.what()) + "; see pushrod --help, or --help behind a command");
  return kExitRefused;
}

int parseAndRun(int argc, const char* const* argv) {
  int exitCode = kExitDone;
  CLI::App app("Pushrod: pushes the weights of RL trainer ranks to inference engines", "pushrod");
  app.set_version_flag("--version", versionText);
  app.require_subcommand(0, 1);  // Of none we say so ourselves, after unknown words were named.
  app.footer(
      "Exit codes: 0 done or recovered, 1 internal error, 2 refused before any engine was\n"
      "contacted, 3 the push failed, 130 or 143 ended by a signal.");
  addPushCommand(app, exitCode);
  addDrillCommand(app, exitCode);
  addDemoCommand(app, exitCode);
  addEngineCommand(app, exitCode);
  addEnginesCommand(app, exitCode);
  addConfigCommand(app, exitCode);
  addStatusCommand(app, exitCode);
  addExplainCommand(app, exitCode);
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) {
      throw CLI::RequiredError("A subcommand");
    }
  } catch (const CLI::ParseError& error) {
    return usage(app, error);
  }
  return exitCode;
}

}  // namespace

std::string versionText() {
  return "pushrod " PUSHROD_VERSION "\nbuilt with\n" PUSHROD_BUILT_WITH "  xxHash " +
         std::to_string(XXH_VERSION_MAJOR) + "." + std::to_string(XXH_VERSION_MINOR) + "." +
         std::to_string(XXH_VERSION_RELEASE);
}

int runProgram(int argc, const char* const* argv) {
  try {
    return parseAndRun(argc, argv);
  } catch (const std::exception& error) {
    printError(std::string("internal error: ") + error.what());
  }
  return kExitInternal;
}

}  // namespace pushrod::tools
