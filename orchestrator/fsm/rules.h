// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/fsm/push_table.h"

// The guards and effects that rows of the push table name.

namespace pushrod::orchestrator::guard {

inline constexpr Guard kAlways{"", nullptr};
extern const Guard kOk;           ///< the event's status is ok
extern const Guard kGo;           ///< verdict: go on
extern const Guard kGoEqual;      ///< verdict: go on, digests equal
extern const Guard kResend;       ///< verdict: resend
extern const Guard kResendBusy;   ///< verdict: resend, the engines' answers are outstanding
extern const Guard kFail;         ///< verdict: fail
extern const Guard kCanSend;      ///< this rank sends and nothing failed here
extern const Guard kStepOpen;     ///< more tensors belong to this step
extern const Guard kMustHold;     ///< failed here, and the engines' answers are outstanding
extern const Guard kGoMoreSteps;  ///< verdict: go on, steps are left
extern const Guard kGoDraft;      ///< verdict: go on, the draft model's session comes next
extern const Guard kGoalBusy;     ///< the engines' answers are outstanding
extern const Guard kCallerBusy;   ///< the caller operation is outstanding
extern const Guard kOkGoalBusy;   ///< status ok, the engines' answers are outstanding
extern const Guard kGoUnequal;    ///< verdict: go on, digests differ
extern const Guard kPassOn;       ///< verdict: failed, and the pass is to reach its end everywhere
extern const Guard kPassOver;     ///< a failed pass has reached its last tensor
extern const Guard kPassingOn;    ///< a failed pass goes on
extern const Guard kGoMend;       ///< verdict: go on, a gather failed on some rank
// Trouble came after this rank had cast its ballot: it enters no further gather.
extern const Guard kOkStopped;
extern const Guard kGoStopped;
extern const Guard kGoEqualStopped;
extern const Guard kGoMoreStopped;
extern const Guard kGoMendStopped;
extern const Guard kDead;    ///< agreement is dead
extern const Guard kFailed;  ///< the push will not succeed

}  // namespace pushrod::orchestrator::guard

namespace pushrod::orchestrator::effect {

// State only.
extern const Effect kLatch;         ///< keeps the event's failure as this rank's
extern const Effect kPend;          ///< keeps the event's failure for the next ballot
extern const Effect kKeepLost;      ///< keeps which rank is gone
extern const Effect kPeerStopped;   ///< another rank ended the pass
extern const Effect kKeepFirst;     ///< keeps the verdict's first failure as the push's
extern const Effect kKeepOwn;       ///< agreement died: keeps this rank's failure as the push's
extern const Effect kMarkFailed;    ///< the push will not succeed
extern const Effect kNextAttempt;   ///< attempt 2
extern const Effect kPassOn;        ///< the verdict's failure is every rank's until the pass's end
extern const Effect kNewPass;       ///< nothing gathered yet
extern const Effect kDraft;         ///< on to the draft model
extern const Effect kTarget;        ///< back to the target
extern const Effect kStopPass;      ///< no further gather in this pass
extern const Effect kGatherFailed;  ///< a gather failed here: the source must recover
extern const Effect kMended;        ///< the source has recovered
extern const Effect kCount;         ///< one tensor more
extern const Effect kNextStep;
extern const Effect kTensorDone;  ///< raises TensorDone
extern const Effect kTailDone;    ///< raises TailDone

// Actions.
extern const Effect kMeet;
extern const Effect kVote;
extern const Effect kShare;
extern const Effect kManifest;
extern const Effect kPrepare;
extern const Effect kGoal;
extern const Effect kCancelGoal;
extern const Effect kChannelOpen;
extern const Effect kChannelAbort;
extern const Effect kBegin;
extern const Effect kNext;
extern const Effect kRecover;
extern const Effect kPut;
extern const Effect kFlush;
extern const Effect kStopPlane;
extern const Effect kStopPeers;  ///< tells the other ranks that this one failed in its collective
extern const Effect kInterrupt;  ///< interrupts what is outstanding, but not a vote
extern const Effect kInterruptVote;
extern const Effect kArmDrain;
extern const Effect kFinish;

}  // namespace pushrod::orchestrator::effect
