// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace pushrod::tools {

/// `engines close-session|pause|resume|version|checksums`: an operator's orders to the configured
/// engines. When one is chosen, `exitCode` becomes the program's.
void addEnginesCommand(CLI::App& app, int& exitCode);

}  // namespace pushrod::tools
