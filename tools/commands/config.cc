// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/config.h"

#include <algorithm>
#include <memory>
#include <string>

#include <pushrod/config.h>

#include "config/support.h"
#include "http/tls.h"
#include "tools/console.h"
#include "tools/exit_code.h"

namespace pushrod::tools {
namespace {

struct CheckOptions {
  std::string file;
  bool effective = false;
};

/// What a push from this host would find of the certificates. No fault of the text: the files may
/// be meant for another host, rank 0's.
Status checkTls(const EnginesConfig& engines) {
  const bool used =
      engines.list.empty() ||
      std::any_of(engines.list.begin(), engines.list.end(), [](const EngineConfig& engine) {
        return engine.url.starts_with("https://");
      });
  const TlsConfig& tls = engines.tls;
  return used ? http::checkTlsFiles({tls.ca, tls.cert, tls.key, tls.verify}) : Status();
}

int check(const CheckOptions& options) {
  const Result<Config> config = Config::load(options.file);
  if (!config) {
    printFaults(config.status().message());
    return kExitRefused;
  }
  for (const std::string& warning : config->warnings) {
    printError("warning: " + warning);
  }
  // Sound, and yet nothing that this build could push with.
  const Status supported = config::checkSupported(*config);
  if (!supported) {
    printError("warning: " + supported.message());
  }
  const Status files = checkTls(config->engines);
  if (!files) {
    printError("warning: engines.tls: " + files.message() + "; a push from this host is refused");
  }
  return printAnswer(options.effective ? config->effective() : options.file + ": no faults\n");
}

}  // namespace

void addConfigCommand(CLI::App& app, int& exitCode) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App* config = app.add_subcommand("config", "Look at a configuration file");
  config->require_subcommand(1);
  CLI::App* checking = config->add_subcommand("check", "Report every fault of a file at once");
  checking->add_option("file", options->file, "Configuration file (YAML)")->required();
  checking->add_flag(
      "--effective", options->effective, "Print the configuration with all defaults filled in");
  checking->callback([options, &exitCode] { exitCode = check(*options); });
}

}  // namespace pushrod::tools
