// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/drill.h"

#include <memory>

#include "tools/commands/rank_flags.h"
#include "tools/push_options.h"
#include "tools/push_parent.h"
#include "tools/rank_runner.h"

namespace pushrod::tools {

void addDrillCommand(CLI::App& app, int& exitCode) {
  const auto options = std::make_shared<PushOptions>();
  CLI::App* drill = app.add_subcommand(
      "drill", "Push made-up weights with planned faults: a game day for your engines");
  addRankFlags(*drill, *options);
  drill->add_option("--plan", options->plan, "Drill plan (JSON)")->required()->type_name("FILE");
  drill->callback([options, &exitCode] {
    checkRankFlags(*options);
    if (options->plan.empty()) {
      throw CLI::ValidationError("--plan", "is empty; name a file");
    }
    exitCode = options->ranks > 0 ? runPushParent(*options) : RankRunner(*options).run();
  });
}

}  // namespace pushrod::tools
