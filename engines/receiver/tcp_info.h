// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <boost/json/value.hpp>

#include <pushrod/result.h>
#include <pushrod/tensor.h>

namespace pushrod::engines::receiver {

struct TcpSource {
  int src = 0;
  std::string address;
  std::uint16_t port = 0;
};

/// init_info of the tcp backend (docs: wire format, section tcp).
struct TcpInit {
  std::vector<TcpSource> sources;  ///< by ascending src, from 0
  std::int64_t rankOffset = 1;
  std::int64_t worldSize = 2;
  std::array<std::uint8_t, 16> channel{};
  std::uint64_t bufferBytes = 0;

  static Result<TcpInit> parse(const boost::json::value& info);
};

/// update_info of the tcp backend.
struct TcpUpdate {
  std::vector<TensorSpec> tensors;
  int src = 0;

  static Result<TcpUpdate> parse(const boost::json::value& info);
};

/// A chunk as the packed rule cuts it: the sum is closed after the tensor that makes it strictly
/// greater than the buffer.
struct ChunkPlan {
  std::size_t first = 0;
  std::size_t count = 0;
  std::uint64_t bytes = 0;
};

/// What is left at the end becomes a chunk only when it has bytes.
[[nodiscard]] std::vector<ChunkPlan> cutChunks(const std::vector<TensorSpec>& tensors,
                                               std::uint64_t bufferBytes);

}  // namespace pushrod::engines::receiver
