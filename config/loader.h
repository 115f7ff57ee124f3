// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <pushrod/config.h>

#include "config/environment.h"

namespace pushrod::config {

/// As Config::parse; `environment` gives the values of ${NAME}.
[[nodiscard]] Result<Config> parseConfig(
    const std::string& text,
    const std::string& name,
    const EnvironmentLookup& environment = processEnvironment());

/// Reads `engines.file`: a YAML or JSON list of engines as in engines.list, not empty.
[[nodiscard]] Result<std::vector<EngineConfig>> loadEngines(const std::string& path);
/// As loadEngines, from text.
[[nodiscard]] Result<std::vector<EngineConfig>> parseEngines(
    const std::string& text,
    const std::string& name,
    const EnvironmentLookup& environment = processEnvironment());

}  // namespace pushrod::config
