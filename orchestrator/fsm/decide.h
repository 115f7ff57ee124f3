// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <pushrod/agreement.h>
#include <pushrod/status.h>

namespace pushrod::orchestrator {

/// What rank 0 knows when a vote is counted.
struct DecideInput {
  Phase phase = Phase::kIdle;
  std::uint32_t attempt = 1;
  bool resendAllowed = true;  ///< push.resend
  bool timeLeft = true;       ///< the push's own limit has not passed
  bool engineLost = false;    ///< an engine that this push needs cannot be used any more
};

/// Ruling P2, in one place: what follows from a vote's first failure.
[[nodiscard]] Decision decide(const DecideInput& input, const Status& first);

}  // namespace pushrod::orchestrator
