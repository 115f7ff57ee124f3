// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/config.h>
#include <pushrod/engine_client.h>
#include <pushrod/phase.h>

namespace pushrod::sim {

/// What goes wrong, once, at one seam call.
enum class FaultKind : std::uint8_t {
  kNone,
  kRefused,        ///< engine: never sent
  k4xx,            ///< engine: rejected
  k5xxBefore,      ///< engine: an error before it acted
  k5xxAfter,       ///< engine: it acted, then an error
  kLostReply,      ///< engine: it acted, no answer until the deadline
  kLostRequest,    ///< engine: it never hears of the call, no answer until the deadline
  kRestart,        ///< engine: crashes and comes back with its first weights
  kDead,           ///< engine: crashes for ever
  kThrows,         ///< source: one rank's call fails
  kHangs,          ///< source: one rank's call never ends by itself; abort() ends it
  kHangsDeaf,      ///< source: as kHangs, but abort() cannot; the trainer's watchdog ends it
  kEndsEarly,      ///< source: one rank's pass ends before its time
  kMismatch,       ///< source: one rank yields another tensor
  kPlaneFails,     ///< plane: open, put or flush fails
  kVerdictLost,    ///< vote: the verdict does not reach one rank
  kRankDies,       ///< any: the acting rank's process is gone
  kRankStops,      ///< any: the acting rank does not run for a while
  kCancel,         ///< any: one rank is cancelled
  kRestartAfter,   ///< engine: it acted and crashes before it answers
  kRestartLater,   ///< engine: it acted, answers, and crashes unseen
  kOtherServer,    ///< engine: as kRestart, and another model is served there from then on
  kLateReply,      ///< engine: it acted; the answer comes late, mostly after the deadline
  kTwice,          ///< engine: the request is served twice
  kStalls,         ///< engine: it does nothing for a while, then all it was asked
  kFrozen,         ///< engine: its core never answers again, its front end says so after a while
  kLost,           ///< engine: an error, and its workers' replies cannot be told apart any more
  kResumed,        ///< engine: somebody else resumes it just before the call
  kKeepsLabel,     ///< engine, finish: done, but the version is not stored
  kAnswersEarly,   ///< engine, update: a good answer before the bytes are read
  kStopsReading,   ///< engine, update: reads no byte more and does not answer
  kOneSided,       ///< engine, init: a good answer, but it never joins the channel
  kOtherManifest,  ///< source, manifest: one rank declares another tensor
  kStaleVote,      ///< vote: one rank is handed the record of the vote before
  kNoMemory,       ///< vote, prepare: one rank's first buffers cannot be had
  kPlaneStalls,    ///< plane: a put or flush takes long
  kOtherValues,    ///< source: one rank's copy of a tensor holds other values
  kCorrupt,        ///< engine, finish: a good answer, but it holds other values than it was sent
};

inline constexpr std::size_t kFaultKinds = 38;

[[nodiscard]] std::string_view faultName(FaultKind kind);
[[nodiscard]] std::optional<FaultKind> faultFromName(std::string_view name);

enum class Seam : std::uint8_t { kEngine, kSource, kPlane, kVote };

inline constexpr std::size_t kSeams = 4;

/// The seam whose calls `kind` counts; nullopt: all of them.
[[nodiscard]] std::optional<Seam> seamOf(FaultKind kind);

/// One call at a seam, as faults see it.
struct SeamCall {
  Seam seam = Seam::kEngine;
  int rank = 0;                  ///< who calls
  int engine = -1;               ///< kEngine
  std::optional<CallKind> call;  ///< kEngine
  std::string_view what;         ///< other seams: the action's name
  int push = 1;
  Phase phase = Phase::kIdle;  ///< rank 0's
  std::uint32_t attempt = 0;
  bool draft = false;  ///< at the draft model
};

/// One fault of a run: what it waits for, what it does and for how long.
struct Fault {
  FaultKind kind = FaultKind::kNone;
  std::uint64_t nth = 1;         ///< among the calls that fit it, from 1
  std::optional<CallKind> call;  ///< engine seam: only calls of this kind
  int where = -1;                ///< only of this engine (engine seam) or rank; -1: any
  int push = 1;                  ///< in which it strikes
  bool chained = false;          ///< counts only once the fault before it has struck
  int victim = -1;               ///< faults of whole ranks: not the acting one, but this
  Duration delay{};              ///< faults of whole ranks: so long after the call
  Duration lasts{};              ///< zero: what is usual for the kind

  [[nodiscard]] bool fits(const SeamCall& call) const;
  /// Whether it is nobody's loss: the push must end done.
  [[nodiscard]] bool harmless() const;
  [[nodiscard]] std::string text() const;
};

/// How an engine is found by the first push.
struct EngineStart {
  bool paused = false;
  bool session = false;  ///< left open, with a layer half loaded
  bool draft = false;    ///< it is one of the draft model
  bool asleep = false;
  std::string label = "default";
};

/// One run: the shape of the world and its faults. A run is a pure function of this.
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

  bool pass = false;       ///< push.stop: pass
  bool draft = false;      ///< pushes carry the draft model as well
  int targetOnly = 0;      ///< ... but this one
  bool replicas = false;   ///< push.check_replicas: digest
  bool checksums = false;  ///< push.verify: checksum
  /// Who owns the tensors: 0 rank 0, over the plain stream; 1 the last rank; 2 rank 0 and the last,
  /// a layer each; 3 the first three in turn.
  int owners = 0;

  // Of random plans only.
  std::optional<std::uint64_t> seed{};  ///< what the plan was drawn from; also of the world's pace
  std::vector<Fault> faults{};
  std::optional<std::vector<std::size_t>> kept{};  ///< which of the drawn faults these are
  int pushes = 1;             ///< in the fault phase; one more follows when all is healed
  bool tight = false;         ///< short limits
  Duration pushLimit{};       ///< zero: long
  std::uint64_t buffer = 20;  ///< bytes of a step; a tensor has 8
  int wave = 1;               ///< with quarantine
  MinHealthy minHealthy{};
  bool resend = true;
  bool flush = true;
  VersionMarker marker = VersionMarker::kAuto;
  Wake wake = Wake::kFalse;
  bool versions = true;  ///< false: releases without a version route, push.verify: none
  bool verify = true;
  bool sameVersion = false;  ///< every push has the same version
  int workers = 1;           ///< of each engine
  int slowRank = -1;         ///< one rank takes ten times as long
  int slowEngine = -1;
  int otherConfig = -1;  ///< a rank with another configuration
  Duration pauseTakes{};
  std::vector<Duration> rankSkews{};    ///< how much later each rank begins every push
  std::vector<Duration> engineSkews{};  ///< how long each engine's first answer takes at first
  std::vector<EngineStart> starts{};    ///< empty: all as usual

  /// Whether an engine that holds other values than it was sent is always found out. Where it is
  /// not, no such fault strikes.
  [[nodiscard]] bool provesContent() const;
  /// The faults as the world counts them, those of a sweep included.
  [[nodiscard]] std::vector<Fault> list() const;
  /// Everything that was drawn, for people.
  [[nodiscard]] std::string text() const;
  /// The command that repeats this run.
  [[nodiscard]] std::string replay() const;
};

}  // namespace pushrod::sim
