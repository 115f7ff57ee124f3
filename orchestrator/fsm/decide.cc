// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/fsm/decide.h"

namespace pushrod::orchestrator {

namespace {

/// Phases whose failure a full resend can mend (P2).
bool resendable(Phase phase) {
  return phase >= Phase::kClean && phase <= Phase::kConfirm;
}

/// Failures that would only repeat.
bool wouldRepeat(Phase phase, const Status& first) {
  switch (first.code()) {
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition:
    case Code::kCancelled:
      return true;
    case Code::kDataMismatch:
      // The stream differs from its manifest: so will the next pass. Read back from an engine it
      // may be a label that was lost between two of its own calls (P23).
      return phase != Phase::kVerify && phase != Phase::kFinish;
    case Code::kDeadlineExceeded:
      // An init that reached its limit is not tried again.
      return phase == Phase::kChannel;
    case Code::kOk:
    case Code::kUnavailable:
    case Code::kAborted:
    case Code::kInternal:
      return false;
  }
  return false;
}

}  // namespace

Decision decide(const DecideInput& input, const Status& first) {
  // In verdict the engines are resumed or left as they are: nothing is decided there any more.
  if (first.ok() || input.phase == Phase::kVerdict) {
    return Decision::kGo;
  }
  const bool again = input.resendAllowed && input.attempt == 1 && input.timeLeft &&
                     !input.engineLost && resendable(input.phase) &&
                     !wouldRepeat(input.phase, first);
  return again ? Decision::kResend : Decision::kFail;
}

}  // namespace pushrod::orchestrator
