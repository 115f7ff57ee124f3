// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace pushrod::common {

/// "2026-01-31T12:00:00.123Z".
[[nodiscard]] std::string utcText(std::chrono::system_clock::time_point when);
/// A duration for people: "350 ms", "4.2 s", "3 min 5 s".
[[nodiscard]] std::string durationText(std::chrono::nanoseconds duration);

}  // namespace pushrod::common
