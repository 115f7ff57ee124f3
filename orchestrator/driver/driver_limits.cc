// SPDX-License-Identifier: Apache-2.0
// Every limit of a push, in one place.
#include <algorithm>

#include "orchestrator/driver/push_driver.h"

namespace pushrod::orchestrator {

Duration PushDriver::phaseLimit() const {
  const TimeoutsConfig& limits = parts_.config.timeouts;
  switch (state_.phase) {
    case Phase::kCheck:
      return state_.stage == Stage::kMeet ? limits.connect : limits.gather;
    case Phase::kConnect:
      // An engine that this coordinator never saw may still be starting. Only rank 0 knows whether
      // one is; the others wait for the longer of the two.
      return std::max(limits.connect, limits.startup);
    case Phase::kPause:
      return limits.pause;
    case Phase::kChannel:
      return limits.init;
    case Phase::kStream:
      return limits.request + limits.drain;
    case Phase::kResume:
      return limits.resume;
    case Phase::kFailing:
      // The rest is for the verdict, the report and the process's own end.
      return limits.shutdown / 4 * 3;
    case Phase::kRecover:
      return limits.gather;
    case Phase::kIdle:
    case Phase::kPrepare:
    case Phase::kClean:
    case Phase::kStart:
    case Phase::kAgree:
    case Phase::kFinish:
    case Phase::kFlush:
    case Phase::kVerify:
    case Phase::kConfirm:
    case Phase::kVerdict:
    case Phase::kDone:
    case Phase::kFailed:
      break;
  }
  return limits.request;
}

Deadline PushDriver::capped(Duration limit) const {
  const Deadline cap =
      state_.failed || state_.phase == Phase::kVerdict ? hardDeadline_ : workDeadline_;
  return Deadline::after(parts_.executor, limit).earliest(cap);
}

Deadline PushDriver::voteDeadline() const {
  // Counted from the last rank's possible arrival: the others may still be at this phase's work.
  const Duration limit = phaseLimit() + parts_.config.timeouts.agreement;
  return Deadline::after(parts_.executor, limit).earliest(hardDeadline_);
}

void PushDriver::armDrain() {
  if (drain_ != 0) {
    return;
  }
  parts_.observer.onDrain(parts_.config.timeouts.drain);
  const TimePoint when = parts_.executor.now() + parts_.config.timeouts.drain;
  drain_ = parts_.executor.postAt(when, [this, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired()) {
      return;
    }
    drain_ = 0;
    feed(Event{EventKind::kDrained, drainCause(), {}});
  });
}

/// What was declared against what has left, for the engines that the tail waits for, or all.
std::string PushDriver::bytesText() const {
  constexpr int kMostNamed = 4;
  const std::vector<std::string> silent = runner_.waiting();
  int listed = 0;
  std::string text;
  for (std::size_t place = 0; place < channelSlots_.size(); ++place) {
    const EngineSlot& slot = runner_.slots()[channelSlots_[place]];
    const std::string& name = slot.client->name();
    if (!silent.empty() && std::find(silent.begin(), silent.end(), name) == silent.end()) {
      continue;
    }
    if (++listed > kMostNamed) {
      return text + ", and others";
    }
    const int workers = slot.ledger.identity == nullptr ? 1 : slot.ledger.identity->worldSize;
    const std::uint64_t declared = passManifest()->bytes() * static_cast<std::uint64_t>(workers);
    text += (text.empty() ? "" : ", ") + name + ": " +
            std::to_string(parts_.plane->bytesSent(place)) + " of " + std::to_string(declared) +
            " bytes sent";
  }
  return text;
}

Status PushDriver::drainCause() const {
  const std::vector<std::string> silent = runner_.waiting();
  Origin origin;
  std::string why = "the engines answered while bytes remained";
  if (silent.size() == 1) {
    origin.engine = silent.front();
    why = "it did not answer";
  } else if (!silent.empty()) {
    why = "engines " + silent.front();
    for (std::size_t i = 1; i < silent.size(); ++i) {
      why += ", " + silent[i];
    }
    why += " did not answer";
  }
  return mine(
      Status(Code::kDeadlineExceeded,
             why + " within timeouts.drain of the end of the other side (" + bytesText() + ")",
             Outcome::kUnknown)
          .at(origin));
}

void PushDriver::disarm(Executor::TimerId& timer) {
  if (timer != 0) {
    parts_.executor.cancel(timer);
    timer = 0;
  }
}

}  // namespace pushrod::orchestrator
