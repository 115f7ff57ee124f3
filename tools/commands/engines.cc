// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/engines.h"

#include <memory>
#include <string>

#include "tools/console.h"
#include "tools/engine_orders.h"
#include "tools/exit_code.h"

namespace pushrod::tools {
namespace {

struct EnginesOptions {
  std::string config;
  std::string only;
  bool force = false;
};

int carryOut(EngineOrder order, const EnginesOptions& options) {
  Result<Config> config = Config::load(options.config);
  if (!config) {
    printFaults(config.status().message());
    return kExitRefused;
  }
  const auto lines = orderEngines(std::move(*config), order, options.only, options.force);
  if (!lines) {
    printError(lines.status().message() + "; no engine was contacted");
    return kExitRefused;
  }
  int code = kExitDone;
  std::string text;
  for (const EngineLine& line : *lines) {
    text += line.text + "\n";
    code = line.failed ? kExitFailed : code;
  }
  return printAnswer(text, code);
}

}  // namespace

void addEnginesCommand(CLI::App& app, int& exitCode) {
  struct Entry {
    EngineOrder order;
    const char* name;
    const char* help;
  };

  static constexpr Entry kEntries[] = {
      {EngineOrder::kCloseSession, "close-session", "Close a weight update that was left open"},
      {EngineOrder::kPause, "pause", "Pause generation, as push.pause says"},
      {EngineOrder::kResume, "resume", "Resume generation where all engines hold one version"},
      {EngineOrder::kVersion, "version", "Show the version that each engine reports"},
      {EngineOrder::kChecksums, "checksums", "Show one digest of each engine's parameters"}};
  CLI::App* engines = app.add_subcommand("engines", "An operator's orders to the engines");
  engines->require_subcommand(1);
  for (const Entry& entry : kEntries) {
    const auto options = std::make_shared<EnginesOptions>();
    CLI::App* command = engines->add_subcommand(entry.name, entry.help);
    command->add_option("--config", options->config, "Configuration file (YAML)")->required();
    command->add_option("--only", options->only, "Only the engine of that name")->type_name("NAME");
    if (entry.order == EngineOrder::kResume) {
      command->add_flag("--force", options->force, "Resume whatever version an engine holds");
    }
    command->callback(
        [order = entry.order, options, &exitCode] { exitCode = carryOut(order, *options); });
  }
}

}  // namespace pushrod::tools
