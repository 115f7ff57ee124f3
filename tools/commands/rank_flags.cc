// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/rank_flags.h"

namespace pushrod::tools {

void addRankFlags(CLI::App& command, PushOptions& options) {
  constexpr int kMostRanks = 256;
  command.add_option("--config", options.config, "Configuration file (YAML)")->required();
  command.add_option("--report", options.report, "Write the report (JSON) to this file")
      ->type_name("FILE");
  command
      .add_option("--flight-record",
                  options.flight,
                  "Leave flight records of failed and resent pushes in this folder, instead of the "
                  "report's or, without a report, the working one")
      ->type_name("DIR");
  CLI::Option* ranks =
      command.add_option("--ranks", options.ranks, "Start so many local ranks and supervise them")
          ->check(CLI::Range(1, kMostRanks));
  command.add_option("--rank", options.rank, "This process's rank, instead of the launcher's word")
      ->check(CLI::NonNegativeNumber)
      ->excludes(ranks);
  command.add_option("--world-size", options.worldSize, "Number of ranks")
      ->check(CLI::PositiveNumber)
      ->excludes(ranks);
  // Between this program's own processes; an empty group keeps it out of --help.
  command.add_option("--supervised", options.folder)->group("");
}

void checkRankFlags(const PushOptions& options) {
  if (options.rank.has_value() != options.worldSize.has_value()) {
    throw CLI::ValidationError("--rank and --world-size", "go together; give both or neither");
  }
}

}  // namespace pushrod::tools
