// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/demo.h"

#include <memory>

#include "tools/demo/demo.h"

namespace pushrod::tools {

void addDemoCommand(CLI::App& app, int& exitCode) {
  const auto options = std::make_shared<DemoOptions>();
  CLI::App* demo = app.add_subcommand(
      "demo",
      "The whole story on this machine: reference engines, ranks, three pushes, two faults");
  demo->add_option("--checkpoint", options->checkpoint, "Push this folder instead of a made-up one")
      ->type_name("DIR");
  demo->callback([options, &exitCode] { exitCode = Demo(*options).run(); });
}

}  // namespace pushrod::tools
