// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <pushrod/agreement.h>

namespace pushrod::ranks {

/// Longest body of a link frame.
inline constexpr std::size_t kMaxLinkFrame = 4096;

enum class LinkKind : std::uint8_t {
  kHello,    ///< first from a rank to rank 0: token, rank, epoch
  kWelcome,  ///< rank 0's answer: taken
  kBeat,     ///< every second, both ways: key = the sender's position
  kStop,     ///< rank failed inside key
  kLost,     ///< from rank 0: rank is gone
  kVerdict,  ///< from rank 0: its final word on push `epoch`
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
};

/// With its length before it, ready to send.
[[nodiscard]] std::string encode(const LinkFrame& frame);
/// The inverse for a body without its length; unavailable for anything else.
Result<LinkFrame> decodeLinkFrame(std::string_view body);

}  // namespace pushrod::ranks
