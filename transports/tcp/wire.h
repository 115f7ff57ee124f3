// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "common/ids.h"

namespace pushrod::transports::tcp {

// The wire format of the tcp transport, protocol 1: little-endian, nothing padded.

inline constexpr std::size_t kHelloSize = 32;
inline constexpr std::size_t kHeaderSize = 24;
inline constexpr std::size_t kLongestReason = 4096;

/// The byte that answers a hello.
enum class Answer : std::uint8_t {
  kAccepted = 0,
  kUnknownChannel = 1,  ///< also a hello that is none
  kBadRank = 2,         ///< out of range or taken
  kClosing = 3,
};

enum class FrameKind : std::uint32_t { kChunk = 1, kEnd = 2, kAbort = 3 };

/// What a worker says first.
struct Hello {
  common::Id channel{};
  std::uint32_t rank = 0;
};

/// nullopt when the bytes are no hello.
[[nodiscard]] std::optional<Hello> decodeHello(std::span<const std::byte, kHelloSize> bytes);

using Header = std::array<std::byte, kHeaderSize>;

[[nodiscard]] Header encodeHeader(FrameKind kind,
                                  std::uint32_t index,
                                  std::uint64_t length,
                                  std::uint64_t xxh3);

/// Whether two channel ids are equal, in a time that does not tell where they differ.
[[nodiscard]] bool sameChannel(const common::Id& a, const common::Id& b);

}  // namespace pushrod::transports::tcp
