// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/config.h>
#include <pushrod/engine_client.h>
#include <pushrod/status.h>

#include "orchestrator/fsm/fault.h"
#include "orchestrator/fsm/goal.h"
#include "orchestrator/ledger/content.h"

namespace pushrod::orchestrator {

enum class Reach : std::uint8_t { kUnknown, kUp, kLost };
enum class Session : std::uint8_t { kUnknown, kClosed, kOpen };
enum class ChannelState : std::uint8_t { kUnknown, kNone, kReady, kDead };
/// What the engine's weights are, as far as we know.
enum class Content : std::uint8_t { kUnknown, kOld, kBegun, kComplete };
enum class Label : std::uint8_t { kUnknown, kOther, kMarker, kPushed };
enum class Paused : std::uint8_t { kUnknown, kNo, kYes };

/// What /wake_up wakes.
inline constexpr std::string_view kWeightsTag = "weights";
inline constexpr std::string_view kCacheTag = "kv_cache";

/// All that rank 0 knows of one engine: a plain value, changed only by apply().
struct Ledger {
  // Kept from push to push.
  std::shared_ptr<const EngineIdentity> identity;
  Session session = Session::kUnknown;
  ChannelState channel = ChannelState::kUnknown;
  Content content = Content::kUnknown;
  bool needsEmpty =
      true;  ///< P15: pieces of an interrupted stream may be left; true before a first push
  bool needsEmptyDraft = true;  ///< the same of the draft model
  bool draftBroken = false;     ///< its draft model may be half loaded, until a whole one comes
  bool lagMeasured = false;
  int lag = 0;
  bool staleCaches =
      false;  ///< P19: a failure since the last reset; values of torn weights may stay
  bool leftPaused = false;   ///< an earlier push of this job left it paused
  bool quarantined = false;  ///< a push left it out, and none has verified it since
  std::string left;          ///< the version that the last push proved on it; empty: none

  // Of the present push.
  Reach reach = Reach::kUnknown;
  bool silent = false;  ///< its last call had no answer at all
  bool identified = false;
  Paused paused = Paused::kUnknown;
  bool foundPaused = false;
  bool pauseSent = false;
  bool pausedByUs = false;
  Label label = Label::kUnknown;
  std::string labelText;     ///< as last read or set
  std::string oldLabel;      ///< as found, when we replaced it by a marker
  bool changed = false;      ///< found with another version than the last push left
  bool startSent = false;    ///< any start of this push, an empty session's included
  bool emptyOpen = false;    ///< the open session is the empty one
  bool draftOpen = false;    ///< the last session of this push is one of the draft model
  bool staleClosed = false;  ///< a session of an earlier run was closed as it stood (P39)
  bool updateSent = false;
  std::size_t chunksDone = 0;  ///< chunk updates that this session has answered
  bool touched = false;        ///< an update of this push may have loaded something
  bool finishUnknown = false;
  std::string finishAnswer;  ///< of the finish that failed
  bool flushed = false;
  bool proved = false;  ///< reported the pushed version after this push's own finish
  bool verifyRead = false;
  std::shared_ptr<const Checksums> checksums;  ///< as the engine told them after its finish
  Proof proof = Proof::kNone;                  ///< of its content
  std::string proofText;                       ///< why it is no proof
  bool pausedChecked = false;
  bool resumed = false;
  bool resumeAsked = false;
  bool weightsWoken = false;
  bool cacheWoken = false;
  bool dropped = false;  ///< left out of this push (P1): closed, never resumed
  Status error;          ///< first failure of this push at this engine
  Status closing;        ///< failure while closing or putting back

  /// What stays true for the next push.
  [[nodiscard]] Ledger forNextPush() const;
  /// What stays true for the second attempt of the same push.
  [[nodiscard]] Ledger forNextAttempt() const;
};

/// What a push wants of every engine, and what configuration allows. Shared by all ledgers.
struct PushFacts {
  std::string version;
  std::string marker;
  VersionMarker markerMode = VersionMarker::kAuto;
  bool verify = true;  ///< false: push.verify is none
  bool flush = true;
  bool checksums = false;  ///< the content is to be proved as well, where the release can
  std::shared_ptr<const common::ContentDigests> digests;  ///< of what was sent; null: none
  Wake wake = Wake::kFalse;
  std::string engine;         ///< name, for texts
  bool withDraft = false;     ///< the push carries the draft model as well (P31)
  bool draft = false;         ///< the session at hand is the draft's
  bool anyStartSent = false;  ///< P3: on any engine of this push
  std::shared_ptr<const std::string> initBody;
  bool initComes = false;  ///< the other sources have not said yet where they listen
  std::shared_ptr<const std::string> updateBody;
  /// The bodies of a stream that is one update per chunk, or per run of an owner; null: it is one,
  /// `updateBody`.
  std::shared_ptr<const std::vector<std::shared_ptr<const std::string>>> chunkBodies;
  std::size_t chunksReady = 0;  ///< how many of them may be sent; of chunks: packed on every host
  /// The engine's identity at its last good push; null: none. A change is refused (P5).
  std::shared_ptr<const EngineIdentity> expected;
};

/// `why` is how the engine's goal ended; `interrupted`: we ended it ourselves.
[[nodiscard]] Fault faultOf(const Ledger& ledger, const Status& why, bool interrupted);

/// The ledger of an engine that the push goes on without.
[[nodiscard]] Ledger drop(Ledger ledger);

/// Whether the engine is left asleep in part (P9): with engines.wake: weights its cache stays away,
/// so that generation is for whoever wakes that.
[[nodiscard]] bool staysAsleep(const Ledger& ledger, const PushFacts& facts);

/// The ledger after `reply` to `call`, sent for `goal`.
[[nodiscard]] Ledger apply(
    Ledger ledger, Goal goal, const Call& call, const Reply& reply, const PushFacts& facts);

}  // namespace pushrod::orchestrator
