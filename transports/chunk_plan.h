// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <pushrod/result.h>
#include <pushrod/tensor.h>

namespace pushrod::transports {

/// The packed rule of NCCL and tcp: add the tensor, then close the chunk if its sum is strictly
/// greater than the buffer. A sum equal to the buffer stays open. A plain value.
class PackedRule {
 public:
  explicit PackedRule(std::uint64_t buffer) : buffer_(buffer) {}

  /// Adds a tensor; returns whether the chunk closes after it.
  bool add(std::uint64_t bytes) {
    open_ += bytes;
    if (open_ <= buffer_) {
      return false;
    }
    open_ = 0;
    return true;
  }

  /// Bytes in the open chunk.
  [[nodiscard]] std::uint64_t open() const { return open_; }

 private:
  std::uint64_t buffer_;
  std::uint64_t open_ = 0;
};

/// Where a manifest is cut into chunks; each step is the index after its last tensor, the last one
/// is the number of tensors. Tensors without bytes after the last chunk belong to it, since no
/// chunk is sent for them; a manifest without any bytes is one step.
[[nodiscard]] std::vector<std::size_t> stepEnds(const Manifest& manifest, std::uint64_t buffer);

/// One chunk of shm: its tensors are those before `end`, from the end of the chunk before.
struct Chunk {
  std::size_t end = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Chunk&) const = default;
};

/// The packed rule of ipc and shm: a chunk is closed before a tensor that would make it larger than
/// the buffer. Tensors without bytes stay where they stand; a manifest without any bytes is one
/// chunk. Refuses (invalidArgument) a tensor that is larger than the buffer.
Result<std::vector<Chunk>> chunksWithin(const Manifest& manifest, std::uint64_t buffer);

/// Bytes of each chunk, in order; none is zero.
[[nodiscard]] std::vector<std::uint64_t> chunkBytes(const Manifest& manifest, std::uint64_t buffer);

}  // namespace pushrod::transports
