// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>

namespace pushrod::common {

/// Writes a text where a reader may have stopped reading, such as a terminal or a pipe to another
/// program. False: not all of it left within `limit`, or it cannot be written at all.
bool writeWithin(int fd, std::string_view text, std::chrono::milliseconds limit);

}  // namespace pushrod::common
