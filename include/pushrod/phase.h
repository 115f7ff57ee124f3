// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace pushrod {

/// A phase of a push. The text of each (phaseName) is the one name used in metrics, reports, status
/// and logs. `kIdle`, `kDone` and `kFailed` are the resting states of the push table.
enum class Phase : std::uint8_t {
  kIdle,
  kCheck,    ///< all ranks: same configuration, same manifest
  kConnect,  ///< rank 0: engines reachable, identity, sizes, session flag, late replies
  kPrepare,  ///< all: plan, encoded bodies, first buffers; nothing that needs a pause
  kPause,    ///< rank 0: /pause until /is_paused
  kClean,    ///< rank 0: stale sessions closed, empty session, version marker
  kChannel,  ///< senders: data plane built where there is none
  kStart,    ///< rank 0: /start_weight_update
  kStream,   ///< all: gather, pack, send, step by step; /update_weights beside it
  kAgree,    ///< all: one vote before any version is published
  kFinish,   ///< rank 0: /finish_weight_update with the version
  kFlush,    ///< rank 0: caches
  kVerify,   ///< rank 0: /weight_info equals the version to the letter
  kConfirm,  ///< all: one vote: is every engine proved
  kResume,   ///< rank 0: /resume
  kVerdict,  ///< all: one vote: the outcome
  kRecover,  ///< all: our side of the channel aborted; then back to clean
  kFailing,  ///< all: last clean-up before a failed verdict
  kDone,
  kFailed,
};

inline constexpr std::size_t kPhaseCount = 20;

/// Lower-case name of a phase, e.g. "stream".
[[nodiscard]] constexpr std::string_view phaseName(Phase phase) {
  constexpr std::array<std::string_view, kPhaseCount> kNames = {
      "idle",   "check",   "connect", "prepare", "pause", "clean",  "channel",
      "start",  "stream",  "agree",   "finish",  "flush", "verify", "confirm",
      "resume", "verdict", "recover", "failing", "done",  "failed"};
  const auto index = static_cast<std::size_t>(phase);
  return index < kNames.size() ? kNames[index] : std::string_view("?");
}

}  // namespace pushrod
