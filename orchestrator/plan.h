// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/result.h>

namespace pushrod::orchestrator {

/// What rank 0 tells the others before the pause: after which tensors the votes of a pass stand.
struct Plan {
  std::vector<std::uint64_t> steps;  ///< ascending, the last is the number of tensors
  std::string segments;              ///< names shm's segments of this run; empty: none are needed
  std::vector<int> packers;          ///< ranks that write them, ascending
  std::vector<std::uint64_t> draftSteps = {};  ///< as `steps`, of the draft model; empty: none

  [[nodiscard]] bool packs(int rank) const;

  [[nodiscard]] std::string encode() const;
  /// Refuses a text that is not a plan over `tensors` tensors, and `draftTensors` of a draft model.
  static Result<Plan> decode(std::string_view text,
                             std::uint64_t tensors,
                             std::uint64_t draftTensors = 0);
  bool operator==(const Plan&) const = default;
};

}  // namespace pushrod::orchestrator
