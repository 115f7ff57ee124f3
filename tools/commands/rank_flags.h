// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include "tools/push_options.h"

namespace pushrod::tools {

/// The flags of a command that runs as one rank or supervises local ones: --config, --report and
/// who the ranks are. `options` must live as long as the command.
void addRankFlags(CLI::App& command, PushOptions& options);
/// What CLI11 cannot say about their combinations; throws its errors.
void checkRankFlags(const PushOptions& options);

}  // namespace pushrod::tools
