// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace pushrod::tools {

/// `config check`: every fault of a configuration file at once. When it is chosen, `exitCode`
/// becomes the program's.
void addConfigCommand(CLI::App& app, int& exitCode);

}  // namespace pushrod::tools
