// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace pushrod::tools {

/// `push`: pushes a checkpoint folder as one trainer rank, or supervises local ranks. When it is
/// chosen, `exitCode` becomes the program's.
void addPushCommand(CLI::App& app, int& exitCode);

}  // namespace pushrod::tools
