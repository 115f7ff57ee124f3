// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/agreement.h>

#include "ranks/record_exchange.h"

namespace pushrod::ranks {

/// Longest body of a link frame.
inline constexpr std::size_t kMaxLinkFrame = 8192;
/// Most positions in one frame; more go in several.
inline constexpr std::size_t kMaxPositions = 64;

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
  kHalt,        ///< the pass of key cannot succeed, as rank found
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
  RecordPart part;                      ///< kRecordPart; its rank and epoch stand above
};

/// With its length before it, ready to send.
[[nodiscard]] std::string encode(const LinkFrame& frame);
/// The inverse for a body without its length; unavailable for anything else.
Result<LinkFrame> decodeLinkFrame(std::string_view body);

}  // namespace pushrod::ranks
