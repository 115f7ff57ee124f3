// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/push.h"

#include <memory>
#include <string>

#include "tools/push_options.h"
#include "tools/push_parent.h"
#include "tools/rank_runner.h"

namespace pushrod::tools {
namespace {

constexpr int kMostRanks = 256;

/// What CLI11 cannot say about combinations of options.
void checkCombination(const PushOptions& options) {
  if (options.rank.has_value() != options.worldSize.has_value()) {
    throw CLI::ValidationError("--rank and --world-size", "go together; give both or neither");
  }
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
  push->add_option("--config", options->config, "Configuration file (YAML)")->required();
  push->add_option("--checkpoint", options->checkpoint, "Checkpoint folder")->type_name("DIR");
  push->add_option("--version", options->version, "Version that the engines shall report");
  push->add_option("--report", options->report, "Write the push report (JSON) to this file")
      ->type_name("FILE");
  CLI::Option* ranks =
      push->add_option("--ranks", options->ranks, "Start so many local ranks and supervise them")
          ->check(CLI::Range(1, kMostRanks));
  push->add_option("--rank", options->rank, "This process's rank, instead of the launcher's word")
      ->check(CLI::NonNegativeNumber)
      ->excludes(ranks);
  push->add_option("--world-size", options->worldSize, "Number of ranks")
      ->check(CLI::PositiveNumber)
      ->excludes(ranks);
  // Between this program's own processes; an empty group keeps them out of --help.
  push->add_option("--supervised", options->folder)->group("");
  push->add_flag("--orders", options->orders)->group("");
  push->callback([options, &exitCode] {
    checkCombination(*options);
    exitCode = options->ranks > 0 ? runPushParent(*options) : RankRunner(*options).run();
  });
}

}  // namespace pushrod::tools
