// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <pushrod/result.h>

namespace pushrod::orchestrator {

/// Flight records of one job that stay in a folder.
inline constexpr std::size_t kKeptFlights = 20;

/// Writes `flight-<job>-<UTC>-<pid>.jsonl` in `folder`, which is made where it is missing, by a
/// temporary file and a rename; then removes that job's oldest beyond kKeptFlights. Returns the
/// path. Blocks for as long as the disk does.
[[nodiscard]] Result<std::string> writeFlight(const std::string& folder,
                                              const std::string& job,
                                              std::string_view text);

}  // namespace pushrod::orchestrator
