// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <pushrod/tensor.h>

#include "transports/chunk_plan.h"

namespace pushrod::transports::shm {

/// Where a pass's chunks stand in a segment: one region after the other, used in turn. The same on
/// every rank, since manifest, buffer and buffers are.
struct Layout {
  /// At least two regions, so that a chunk can be packed while the one before is read.
  static Layout of(const std::vector<Chunk>& chunks, int buffers);

  [[nodiscard]] std::uint64_t offset(std::size_t chunk) const { return chunk % regions * region; }

  [[nodiscard]] std::uint64_t size() const { return used * region; }

  std::size_t regions = 2;   ///< a region is written again after so many chunks
  std::size_t used = 2;      ///< of them, how many the pass touches
  std::uint64_t region = 0;  ///< bytes, whole pages
};

/// A segment as the engines of one host find it.
struct HostSegment {
  std::string hostId;
  std::string name;
};

/// The update_info text of the chunk that holds the tensors [first, chunk.end).
[[nodiscard]] std::string chunkBody(const Manifest& manifest,
                                    std::size_t first,
                                    const Chunk& chunk,
                                    const std::vector<HostSegment>& hosts,
                                    std::uint64_t offset);

}  // namespace pushrod::transports::shm
