// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pushrod::sim {

/// What goes wrong, once, at one seam call.
enum class FaultKind : std::uint8_t {
  kNone,
  kRefused,      ///< engine: never sent
  k4xx,          ///< engine: rejected
  k5xxBefore,    ///< engine: an error before it acted
  k5xxAfter,     ///< engine: it acted, then an error
  kLostReply,    ///< engine: it acted, no answer until the deadline
  kLostRequest,  ///< engine: it never hears of the call, no answer until the deadline
  kRestart,      ///< engine: crashes and comes back with its first weights
  kDead,         ///< engine: crashes for ever
  kThrows,       ///< source: one rank's call fails
  kHangs,        ///< source: one rank's call never ends by itself; abort() ends it
  kHangsDeaf,    ///< source: as kHangs, but abort() cannot; the trainer's watchdog ends it
  kEndsEarly,    ///< source: one rank's pass ends before its time
  kMismatch,     ///< source: one rank yields another tensor
  kPlaneFails,   ///< plane: open, put or flush fails
  kVerdictLost,  ///< vote: the verdict does not reach one rank
  kRankDies,     ///< any: the acting rank's process is gone
  kRankStops,    ///< any: the acting rank does not run for a while
  kCancel,       ///< any: one rank is cancelled
};

inline constexpr std::size_t kFaultKinds = 19;

[[nodiscard]] std::string_view faultName(FaultKind kind);
[[nodiscard]] std::optional<FaultKind> faultFromName(std::string_view name);

enum class Seam : std::uint8_t { kEngine, kSource, kPlane, kVote };

inline constexpr std::size_t kSeams = 4;

/// The seam whose calls `kind` counts; nullopt: all of them.
[[nodiscard]] std::optional<Seam> seamOf(FaultKind kind);

/// One run: the shape of the world and its fault, or two. A run is a pure function of this.
struct FaultPlan {
  int ranks = 1;
  int engines = 1;
  FaultKind kind = FaultKind::kNone;
  std::uint64_t k = 0;                  ///< counts from 1
  int victim = 0;                       ///< kCancel: the rank
  FaultKind second = FaultKind::kNone;  ///< another fault, after the first
  std::uint64_t secondK = 0;            ///< its call, counted from the first fault on
  bool oldProfile = false;  ///< engines of release 0.22: a failed update keeps its session
  bool quarantine = false;  ///< engines.on_loss: quarantine, with push.wave: 1
  bool chunked = false;     ///< transport shm: an update for each chunk, packed on two hosts

  bool pass = false;  ///< push.stop: pass

  /// The command that repeats this run.
  [[nodiscard]] std::string replay() const;
};

}  // namespace pushrod::sim
