// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/agreement.h>

namespace pushrod::ranks {

/// Longest body of a link frame.
inline constexpr std::size_t kMaxLinkFrame = 8192;
/// Most positions in one frame; more go in several.
inline constexpr std::size_t kMaxPositions = 64;
/// Most bytes of a flight record in one frame; more go in several.
inline constexpr std::size_t kMaxRecordPart = 3072;

enum class LinkKind : std::uint8_t {
  kHello,       ///< first from a rank to the one above: token, rank, epoch
  kWelcome,     ///< its answer: taken, by `rank`
  kBeat,        ///< every second, both ways: where the sender and ranks behind it are
  kStop,        ///< rank failed inside key
  kLost,        ///< rank is gone
  kVerdict,     ///< from rank 0: its final word on push `epoch`
  kRecordAsk,   ///< from rank 0: what did you see of push `epoch`
  kRecordPart,  ///< towards rank 0: a piece of what `rank` saw of push `epoch`
  kRecordEnd,   ///< from rank 0: nobody need stay for push `epoch`'s flight record
};

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

/// One message of the rank link. Members that a kind does not use keep their defaults.
struct LinkFrame {
  LinkKind kind = LinkKind::kBeat;
  std::string token;  ///< kHello
  int rank = -1;
  std::uint64_t epoch = 0;
  VoteKey key;
  Status status;
  Verdict verdict;
  std::vector<RankPosition> positions;  ///< kBeat, at most kMaxPositions
  std::uint32_t part = 0;               ///< kRecordPart: counts the pieces from 0
  bool last = false;                    ///< kRecordPart
  std::string bytes;                    ///< kRecordPart, at most kMaxRecordPart
};

/// With its length before it, ready to send.
[[nodiscard]] std::string encode(const LinkFrame& frame);
/// The inverse for a body without its length; unavailable for anything else.
Result<LinkFrame> decodeLinkFrame(std::string_view body);

}  // namespace pushrod::ranks
