// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/wire.h"

#include <bit>
#include <cstring>

namespace pushrod::transports::tcp {

namespace {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

constexpr std::string_view kMagic = "PUSHROD1";

}  // namespace

std::optional<Hello> decodeHello(std::span<const std::byte, kHelloSize> bytes) {
  Hello hello;
  std::uint32_t zero = 0;
  std::memcpy(hello.channel.data(), bytes.data() + 8, hello.channel.size());
  std::memcpy(&hello.rank, bytes.data() + 24, sizeof hello.rank);
  std::memcpy(&zero, bytes.data() + 28, sizeof zero);
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0 || zero != 0) {
    return std::nullopt;
  }
  return hello;
}

Header encodeHeader(FrameKind kind, std::uint32_t index, std::uint64_t length, std::uint64_t xxh3) {
  Header header{};
  const auto word = static_cast<std::uint32_t>(kind);
  std::memcpy(header.data(), &word, sizeof word);
  std::memcpy(header.data() + 4, &index, sizeof index);
  std::memcpy(header.data() + 8, &length, sizeof length);
  std::memcpy(header.data() + 16, &xxh3, sizeof xxh3);
  return header;
}

bool sameChannel(const common::Id& a, const common::Id& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned>(a[i] ^ b[i]);
  }
  return difference == 0;
}

}  // namespace pushrod::transports::tcp
