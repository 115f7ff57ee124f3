// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <pushrod/report.h>

#include "orchestrator/driver/goal_runner.h"
#include "orchestrator/fsm/push_table.h"

namespace pushrod::orchestrator {

/// Sees what a push does: metrics, logs and the status page in production, invariants in
/// simulation. Called on the control thread; must return at once.
class PushObserver {
 public:
  PushObserver() = default;
  PushObserver(const PushObserver&) = delete;
  PushObserver& operator=(const PushObserver&) = delete;
  virtual ~PushObserver() = default;

  virtual void onStep(const Event& /*event*/, const StepResult& /*result*/) {}

  virtual void onPhase(Phase /*left*/,
                       double /*seconds*/,
                       Phase /*entered*/,
                       std::uint32_t /*attempt*/) {}

  virtual void onReply(std::size_t /*engine*/,
                       Goal /*goal*/,
                       const Call& /*call*/,
                       const Reply& /*reply*/,
                       const Ledger& /*ledger*/) {}

  /// The push goes on without an engine.
  virtual void onDropped(std::size_t /*engine*/, Phase /*phase*/, const Status& /*cause*/) {}

  /// What is known of an engine changed otherwise than by a reply.
  virtual void onEngine(std::size_t /*engine*/, const Ledger& /*ledger*/) {}

  virtual void onVote(double /*seconds*/, const Status& /*status*/) {}

  /// A configured limit ended something, or a vote agreed on a failure.
  virtual void onFailure(Phase /*phase*/, const Status& /*status*/) {}

  virtual void onChannel(bool /*built*/) {}

  virtual void onManifest(std::uint64_t /*tensors*/, std::uint64_t /*bytes*/) {}

  virtual void onTensor(std::uint64_t /*tensors*/, std::uint64_t /*bytes*/) {}

  /// Payload bytes written to engines since the last such call.
  virtual void onBytes(std::uint64_t /*bytes*/) {}

  /// A remark of this rank's pass, at its end.
  virtual void onNote(const std::string& /*note*/) {}

  virtual void onEnd(const PushReport& /*report*/) {}
};

}  // namespace pushrod::orchestrator
