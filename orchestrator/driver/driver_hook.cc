// SPDX-License-Identifier: Apache-2.0
// The trainer's own observer of phases. It runs on the trainer's thread before the phase's first
// work or vote; until it returns, the table's orders wait.
#include <algorithm>
#include <utility>

#include "orchestrator/driver/push_driver.h"

namespace pushrod::orchestrator {

namespace {

/// Whether the observer comes before it. The ranks meet first: a failure before that could not be
/// told to anybody. What ends an operation waits for nobody, least of all while they meet.
bool isWork(const Action& action) {
  switch (action.kind) {
    case ActionKind::kMeet:
    case ActionKind::kFinish:
    case ActionKind::kCancelGoal:
    case ActionKind::kChannelAbort:
    case ActionKind::kSourceAbort:
    case ActionKind::kPlaneInterrupt:
    case ActionKind::kVoteInterrupt:
    case ActionKind::kStopPeers:
    case ActionKind::kArmDrain:
      return false;
    default:
      return true;
  }
}

}  // namespace

void PushDriver::performAll(const Actions& actions) {
  const bool begins = std::any_of(actions.begin(), actions.end(), isWork);
  if (hookBusy_) {
    hold(actions);
    return;
  }
  if (!hookDue_ || !begins) {
    for (const Action& action : actions) {
      perform(action);
    }
    return;
  }
  hookDue_ = false;
  hookBusy_ = true;
  parts_.observer.onHook(true);
  hold(actions);
  CallerRequest request;
  request.hook = [hook = push_.onPhase,
                  phase = state_.phase,
                  attempt = static_cast<int>(state_.attempt)] { return hook(phase, attempt); };
  parts_.caller.perform(std::move(request),
                        [this, alive = std::weak_ptr<int>(alive_)](const CallerResult& result) {
                          if (!alive.expired() && !finished_) {
                            onHook(result.status);
                          }
                        });
}

void PushDriver::hold(const Actions& actions) {
  for (const Action& action : actions) {
    if (action.kind == ActionKind::kStopPeers) {
      perform(action);
    } else {
      held_.push_back(action);
    }
  }
}

void PushDriver::onHook(const Status& status) {
  disarm(abort_);
  hookBusy_ = false;
  parts_.observer.onHook(false);
  const Status failure = status.ok() ? Status() : mine(status);
  for (const Action& action : std::exchange(held_, {})) {
    if (failure.ok()) {
      perform(action);
    } else {
      performFailed(action, failure);
    }
  }
}

/// An order of the phase whose observer failed: its work ends with that failure at once, and what
/// the other ranks wait for is done.
void PushDriver::performFailed(const Action& action, const Status& failure) {
  switch (action.kind) {
    case ActionKind::kVote:
      state_.local.merge(failure);
      parts_.observer.onHookFailed(failure);
      perform(action);
      return;
    case ActionKind::kPrepare:
      startPrepare(failure);
      return;
    case ActionKind::kStartGoal:
      if (state_.phase == Phase::kFailing) {
        // What is open must be closed whatever anybody says.
        perform(action);
        return;
      }
      tell(Event{EventKind::kGoalFailed, failure, {}});
      return;
    case ActionKind::kChannelOpen:
    case ActionKind::kSourceBegin:
      tell(Event{EventKind::kLocalDone, failure, {}});
      return;
    default:
      perform(action);
      return;
  }
}

void PushDriver::tell(Event event) {
  parts_.executor.post([this, event = std::move(event), alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired()) {
      feed(event);
    }
  });
}

}  // namespace pushrod::orchestrator
