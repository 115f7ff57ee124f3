// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace pushrod::tools {

/// `drill`: pushes made-up weights with planned faults, as one trainer rank or supervising local
/// ranks. When it is chosen, `exitCode` becomes the program's.
void addDrillCommand(CLI::App& app, int& exitCode);

}  // namespace pushrod::tools
