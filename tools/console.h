// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tools/exit_code.h"

namespace pushrod::tools {

/// One paragraph on standard error, "pushrod: " before it, in one write.
void printError(std::string_view text);
/// Faults of a file on standard error, as they stand: each line begins with its own place.
void printFaults(std::string_view text);
/// Text on standard output, written out at once. None of the three waits long for a reader that
/// does not read.
void print(std::string_view text);
/// For a command whose output is what it is run for: `code`, or kExitInternal where the text could
/// not be written out, which is then told.
[[nodiscard]] int printAnswer(std::string_view text, int code = kExitDone);
/// "512 B", "1.5 KiB", "32.0 MiB".
[[nodiscard]] std::string bytesText(std::uint64_t bytes);
/// A number with so many digits after the point.
[[nodiscard]] std::string fixedText(double value, int digits);

}  // namespace pushrod::tools
