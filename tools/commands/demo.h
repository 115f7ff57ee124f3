// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace pushrod::tools {

/// `demo`: the whole story on one machine. When it is chosen, `exitCode` becomes the program's.
void addDemoCommand(CLI::App& app, int& exitCode);

}  // namespace pushrod::tools
