// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace pushrod::tools {

/// `status`: one snapshot of a running job. When it is chosen, `exitCode` becomes the program's.
void addStatusCommand(CLI::App& app, int& exitCode);

}  // namespace pushrod::tools
