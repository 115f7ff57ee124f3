// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <pushrod/result.h>
#include <pushrod/tensor.h>

namespace pushrod::transports {

/// What rank 0 plans for a pass whose chunks are updates of their own.
struct ChunkPass {
  std::vector<std::size_t> ends;  ///< tensors after which a chunk ends; the last is their number
  /// The `update_info` JSON text of each chunk, equal for all engines.
  std::vector<std::shared_ptr<const std::string>> bodies;
  std::string unique;        ///< names the segments of this run
  std::vector<int> packers;  ///< ranks that write them, ascending: the lowest of each host
};

/// The other half of a plane (ipc, shm) whose engines are told of each chunk by an update of its
/// own: what goes beside the data pass. An engine reads a chunk once it was packed everywhere,
/// which the vote of that step says, and its region is written again only after all engines have
/// answered.
class ChunkUpdates {
 public:
  ChunkUpdates() = default;
  ChunkUpdates(const ChunkUpdates&) = delete;
  ChunkUpdates& operator=(const ChunkUpdates&) = delete;
  virtual ~ChunkUpdates() = default;

  /// Rank 0, control thread: whether this engine's stream is one update per chunk.
  [[nodiscard]] virtual bool takes(const std::string& engine) const = 0;
  /// Rank 0, control thread, after the ranks have met. Refuses a tensor that fits no buffer.
  virtual Result<ChunkPass> plan(const Manifest& manifest) = 0;
  /// A packer, caller thread: makes sure of the memory that a pass over `manifest` needs.
  virtual Status prepare(const Manifest& manifest, const std::string& unique) = 0;
  /// Rank 0, control thread, before a pass begins: the engines whose answers it waits for.
  virtual void expect(const std::vector<std::string>& engines) = 0;
  /// Rank 0, control thread: `engine` has answered the first `chunks` chunks of the pass.
  virtual void answered(const std::string& engine, std::size_t chunks) = 0;
};

}  // namespace pushrod::transports
