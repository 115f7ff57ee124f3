// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace pushrod::tools {

/// `explain`: what a flight record tells. When it is chosen, `exitCode` becomes the program's.
void addExplainCommand(CLI::App& app, int& exitCode);

}  // namespace pushrod::tools
