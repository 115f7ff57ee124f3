// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <pushrod/report.h>

#include "orchestrator/driver/goal_runner.h"
#include "orchestrator/fsm/push_table.h"

namespace pushrod::orchestrator {

/// One message on the rank link, as the driver sent or heard it.
struct LinkNews {
  enum class Kind : std::uint8_t { kStop, kHalt, kLost, kVerdict, kOversleep };
  Kind kind = Kind::kStop;
  bool sent = false;
  int rank = -1;  ///< whom it is from or about; -1: nobody in particular
  Status status;
};

/// Sees what a push does: metrics, logs and the status page in production, invariants in
/// simulation. Called on the control thread; must return at once.
class PushObserver {
 public:
  PushObserver() = default;
  PushObserver(const PushObserver&) = delete;
  PushObserver& operator=(const PushObserver&) = delete;
  virtual ~PushObserver() = default;

  virtual void onStep(const Event& /*event*/, const StepResult& /*result*/) {}

  /// An operation of the trainer's thread begins; it may take so long.
  virtual void onOperation(ActionKind /*kind*/, Duration /*limit*/) {}

  /// It ended, in its own words.
  virtual void onOperationEnd(ActionKind /*kind*/, const Status& /*status*/) {}

  /// One side of the stream has ended; the other is waited for so long.
  virtual void onDrain(Duration /*limit*/) {}

  /// The steps of the target's pass and of the draft's are known; `packs`: this rank sends as rank
  /// 0 does.
  virtual void onPlan(const std::vector<std::uint64_t>& /*steps*/,
                      const std::vector<std::uint64_t>& /*draftSteps*/,
                      bool /*packs*/) {}

  /// The trainer's own observer of phases begins, or has returned.
  virtual void onHook(bool /*running*/) {}

  /// It failed, which became this rank's failure.
  virtual void onHookFailed(const Status& /*status*/) {}

  virtual void onLink(const LinkNews& /*news*/) {}

  virtual void onPhase(Phase /*left*/,
                       double /*seconds*/,
                       Phase /*entered*/,
                       std::uint32_t /*attempt*/) {}

  /// A call goes out, to end by the deadline.
  virtual void onCall(std::size_t /*engine*/,
                      Goal /*goal*/,
                      const Call& /*call*/,
                      Deadline /*deadline*/) {}

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

  /// The same, with what it says; `draft` is null where the push carries no draft model.
  virtual void onDeclared(const std::shared_ptr<const Manifest>& /*manifest*/,
                          const std::shared_ptr<const Manifest>& /*draft*/) {}

  virtual void onTensor(std::uint64_t /*tensors*/, std::uint64_t /*bytes*/) {}

  /// Payload bytes written to engines since the last such call.
  virtual void onBytes(std::uint64_t /*bytes*/) {}

  /// A remark of this rank's pass, at its end.
  virtual void onNote(const std::string& /*note*/) {}

  virtual void onEnd(const PushReport& /*report*/) {}
};

}  // namespace pushrod::orchestrator
