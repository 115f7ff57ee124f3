// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace pushrod::transports::tcp {

/// XXH3-64 of bytes that come in pieces. Not thread-safe.
class ChunkDigest {
 public:
  ChunkDigest();
  ~ChunkDigest();
  ChunkDigest(const ChunkDigest&) = delete;
  ChunkDigest& operator=(const ChunkDigest&) = delete;

  void reset();
  void add(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pushrod::transports::tcp
