// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <pushrod/config.h>

#include "config/environment.h"

namespace pushrod::config {

struct Checked {
  Config config;
  /// Remarks on a sound configuration, each as FILE:LINE:COLUMN: text, in the order of the text.
  std::vector<std::string> warnings;
};

/// As Config::parse, with the remarks. `name` stands for the file in messages; `environment` gives
/// the values of ${NAME}.
[[nodiscard]] Result<Checked> parseWithWarnings(
    const std::string& text,
    const std::string& name,
    const EnvironmentLookup& environment = processEnvironment());
/// As Config::load, with the remarks.
[[nodiscard]] Result<Checked> loadWithWarnings(const std::string& path);

/// Reads `engines.file`: a YAML or JSON list of engines as in engines.list, not empty.
[[nodiscard]] Result<std::vector<EngineConfig>> loadEngines(const std::string& path);
/// As loadEngines, from text.
[[nodiscard]] Result<std::vector<EngineConfig>> parseEngines(
    const std::string& text,
    const std::string& name,
    const EnvironmentLookup& environment = processEnvironment());

}  // namespace pushrod::config
