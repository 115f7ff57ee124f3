// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/agreement.h>

namespace pushrod::ranks {

/// Most bytes of a flight record in one message; more go in several.
inline constexpr std::size_t kMaxRecordPart = 3072;

/// How far a rank is inside its pass; told with its position.
struct RankProgress {
  std::uint8_t stage = 0;  ///< the push table's, as a number: names are not of this layer
  std::uint32_t begun = 0, returned = 0;  ///< gathers of this pass
  std::uint32_t kibPerSecond = 0;         ///< gathered of late

  bool operator==(const RankProgress&) const = default;
};

/// Where a rank is, as the sender of a beat knows it.
struct RankPosition {
  int rank = -1;
  VoteKey key;
  Duration age{};      ///< since the rank came there, as far as is known
  Duration silence{};  ///< since the rank was heard
  RankProgress progress = {};
  Duration still{};  ///< since its progress last changed
};

/// A piece of a rank's flight record.
struct RecordPart {
  int rank = -1;
  std::uint64_t epoch = 0;
  std::uint32_t number = 0;  ///< counts the pieces from 0
  bool last = false;
  std::string bytes;  ///< at most kMaxRecordPart
};

/// Hears of flight records. Called on the control thread.
class RecordListener {
 public:
  RecordListener() = default;
  RecordListener(const RecordListener&) = delete;
  RecordListener& operator=(const RecordListener&) = delete;
  virtual ~RecordListener() = default;

  /// Rank 0 wants what this rank saw of push `epoch`.
  virtual void onRecordAsked(std::uint64_t epoch) = 0;
  /// On rank 0: a piece of what `rank` saw. Pieces come in order or not at all.
  virtual void onRecordPart(const RecordPart& part) = 0;
  /// Rank 0 waits for nobody's record of push `epoch` any more.
  virtual void onRecordEnded(std::uint64_t epoch) = 0;
  /// A rank is gone, whether a push runs or not.
  virtual void onRankGone(int rank) = 0;
};

/// What the rank link carries besides orders: each rank's progress in its heartbeat, and flight
/// records after a push that failed or recovered. Control thread only; returns at once. What is
/// said to a rank that is gone is dropped.
class RecordExchange {
 public:
  RecordExchange() = default;
  RecordExchange(const RecordExchange&) = delete;
  RecordExchange& operator=(const RecordExchange&) = delete;
  virtual ~RecordExchange() = default;

  /// `listener` must outlive the exchange or be replaced by null.
  virtual void setRecordListener(RecordListener* listener) = 0;
  /// What the next heartbeats tell of this rank.
  virtual void setProgress(const RankProgress& progress) = 0;
  /// Rank 0: asks every rank it can reach.
  virtual void askRecords(std::uint64_t epoch) = 0;
  /// To rank 0, in pieces. The sender keeps `record` small: a rank relays those of others too.
  virtual void sendRecord(std::uint64_t epoch, std::string_view record) = 0;
  /// Rank 0: nobody need stay for it.
  virtual void endRecords(std::uint64_t epoch) = 0;
  /// On rank 0: whether messages of `rank` can arrive; elsewhere only asked of rank 0.
  [[nodiscard]] virtual bool reaches(int rank) const = 0;
  /// What the other ranks said last, by rank: on rank 0 all, elsewhere those below and those on the
  /// way to rank 0.
  [[nodiscard]] virtual std::vector<RankPosition> positions() const = 0;
};

}  // namespace pushrod::ranks
