// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <pushrod/agreement.h>
#include <pushrod/config.h>
#include <pushrod/status.h>

#include "orchestrator/fsm/fault.h"

namespace pushrod::orchestrator {

/// One engine, as decide() sees it.
struct EngineStand {
  Fault fault = Fault::kNone;
  bool dropped = false;  ///< already left out of this push
};

/// What rank 0 knows when a goal settled or a vote is counted.
struct DecideInput {
  Phase phase = Phase::kIdle;
  std::uint32_t attempt = 1;
  bool draftComes = false;     ///< the channel is used once more, for the draft model
  bool resendAllowed = true;   ///< push.resend
  bool timeLeft = true;        ///< the push's own limit has not passed
  bool quarantine = false;     ///< engines.on_loss
  std::size_t minHealthy = 1;  ///< engines.min_healthy, as a number of engines
  std::vector<EngineStand> engines;
  /// Why: an engine's failure and nothing else, or something of this job (which then decides).
  bool enginesAlone = false;
};

/// What follows from a failure: the decision, and the engines that the push then goes on without.
struct Ruling {
  Decision decision = Decision::kGo;
  std::vector<std::size_t> withoutEngines;
  bool tooFew = false;  ///< fails because fewer than engines.min_healthy would remain

  bool operator==(const Ruling&) const = default;
};

/// Rulings P1 and P2, in one place: what follows from a phase's first failure. kGo with engines:
/// the rest goes on in the same attempt, since nothing of theirs was touched by the loss.
[[nodiscard]] Ruling decide(const DecideInput& input, const Status& first);

/// engines.min_healthy of `listed` engines as a number, at least one.
[[nodiscard]] std::size_t healthyNeeded(const MinHealthy& wanted, std::size_t listed);

}  // namespace pushrod::orchestrator
