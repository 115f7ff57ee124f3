// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <pushrod/phase.h>

namespace pushrod::orchestrator {

/// What rank 0 wants of every engine in a phase. nextCall (ledger/next_call.h) says how to get
/// there.
enum class Goal : std::uint8_t {
  kIdentified,
  kPaused,
  kClean,
  kChannelled,
  kStarted,
  kUpdated,
  kFinished,
  kFlushed,
  kVerified,
  kResumed,
  kClosed,
};

inline constexpr std::size_t kGoalCount = 11;

[[nodiscard]] constexpr std::string_view goalName(Goal goal) {
  constexpr std::array<std::string_view, kGoalCount> kNames = {"identified",
                                                               "paused",
                                                               "clean",
                                                               "channelled",
                                                               "started",
                                                               "updated",
                                                               "finished",
                                                               "flushed",
                                                               "verified",
                                                               "resumed",
                                                               "closed"};
  return kNames.at(static_cast<std::size_t>(goal));
}

/// The goal of a phase that has one; kClosed for the others (only kFailing asks for it).
[[nodiscard]] constexpr Goal goalOf(Phase phase) {
  switch (phase) {
    case Phase::kConnect:
      return Goal::kIdentified;
    case Phase::kPause:
      return Goal::kPaused;
    case Phase::kClean:
      return Goal::kClean;
    case Phase::kChannel:
      return Goal::kChannelled;
    case Phase::kStart:
      return Goal::kStarted;
    case Phase::kStream:
      return Goal::kUpdated;
    case Phase::kFinish:
      return Goal::kFinished;
    case Phase::kFlush:
      return Goal::kFlushed;
    case Phase::kVerify:
      return Goal::kVerified;
    case Phase::kResume:
      return Goal::kResumed;
    case Phase::kIdle:
    case Phase::kCheck:
    case Phase::kPrepare:
    case Phase::kAgree:
    case Phase::kConfirm:
    case Phase::kVerdict:
    case Phase::kRecover:
    case Phase::kFailing:
    case Phase::kDone:
    case Phase::kFailed:
      break;
  }
  return Goal::kClosed;
}

}  // namespace pushrod::orchestrator
