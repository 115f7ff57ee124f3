// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace pushrod::tools {

/// The whole program but for main(): parses the arguments, runs one command, returns the exit code
/// (docs: command line). Nothing leaves it as an exception.
int runProgram(int argc, const char* const* argv);

/// The text of --version.
[[nodiscard]] std::string versionText();

}  // namespace pushrod::tools
