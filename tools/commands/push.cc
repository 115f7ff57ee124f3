// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/push.h"

#include <memory>
#include <string>

#include "tools/commands/rank_flags.h"
#include "tools/push_options.h"
#include "tools/push_parent.h"
#include "tools/rank_runner.h"

namespace pushrod::tools {
namespace {

/// What CLI11 cannot say about combinations of options.
void checkCombination(const PushOptions& options) {
  checkRankFlags(options);
  if (!options.orders && options.checkpoint.empty()) {
    throw CLI::RequiredError("--checkpoint");
  }
  if (!options.orders && options.version.empty()) {
    throw CLI::RequiredError("--version, a text that is not empty,");
  }
  if (options.version.starts_with("--")) {
    // `--version=` with nothing behind it takes the next argument for its text.
    throw CLI::ValidationError("--version",
                               "'" + options.version +
                                   "' looks like an option; "
                                   "give the version's text");
  }
}

}  // namespace

void addPushCommand(CLI::App& app, int& exitCode) {
  const auto options = std::make_shared<PushOptions>();
  CLI::App* push = app.add_subcommand(
      "push", "Push a Hugging Face checkpoint folder (safetensors) to the engines");
  addRankFlags(*push, *options);
  push->add_option("--checkpoint", options->checkpoint, "Checkpoint folder")->type_name("DIR");
  push->add_option("--version", options->version, "Version that the engines shall report");
  // Between this program's own processes; an empty group keeps it out of --help.
  push->add_flag("--orders", options->orders)->group("");
  push->callback([options, &exitCode] {
    checkCombination(*options);
    exitCode = options->ranks > 0 ? runPushParent(*options) : RankRunner(*options).run();
  });
}

}  // namespace pushrod::tools
