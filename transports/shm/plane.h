// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <pushrod/config.h>
#include <pushrod/data_plane.h>

#include "transports/chunk_plan.h"
#include "transports/chunk_updates.h"
#include "transports/shm/answers.h"
#include "transports/shm/body.h"
#include "transports/shm/segment.h"

namespace pushrod::transports {
class TensorReader;
}

namespace pushrod::transports::shm {

struct ShmOptions {
  std::string job;
  int rank = 0;
  TransportConfig transport;
  /// Rank 0: whether the engine of this name uses shm. Control thread.
  std::function<bool(const std::string& engine)> takes;
  /// Rank 0: every rank's host id, by rank. Called once the ranks have met.
  std::function<std::vector<std::string>()> hostIds;
};

/// The sending side of transport `shm`: packed chunks of tensors in host memory, in one shared
/// memory segment per host, written by that host's lowest rank. There is no connection: engines are
/// told of each chunk by an update of its own, and a region is written again only after all of them
/// have answered. Memory: max(2, transport.buffers) regions as large as the manifest's largest
/// chunk, which is at most transport.buffer. No thread of its own. On ranks that do not pack it
/// holds nothing.
class ShmPlane final : public DataPlane, public ChunkUpdates {
 public:
  explicit ShmPlane(ShmOptions options);
  ~ShmPlane() override;

  [[nodiscard]] TransportKind kind() const override { return TransportKind::kShm; }

  Result<std::vector<std::string>> announce(const ChannelSpec& spec) override;
  [[nodiscard]] bool ready() const override;
  Status open(Deadline deadline) override;
  /// Fails: a chunk's text is in plan().
  Result<std::string> updateInfo(const Manifest& manifest) override;
  Status begin(const Manifest& manifest) override;
  /// The last tensor of a chunk returns when the next chunk's region may be written.
  Status put(const TensorSpec& spec, const TensorView& view, Deadline deadline) override;
  /// Returns at once: the last chunks' answers are the engines' goal.
  Status flush(Deadline deadline) override;
  /// Ends waits only; a tensor that is being packed is packed to its end.
  void interrupt(const Status& reason) noexcept override;
  void abort(const Status& reason) noexcept override;

  [[nodiscard]] std::uint64_t bytesSent(std::size_t engine) const override;

  [[nodiscard]] std::uint64_t casts() const override {
    return casts_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t bufferBytes() const override;
  [[nodiscard]] std::uint64_t inFlightBytes() const override;
  /// Does nothing while a pass is under way.
  void releaseBuffers() override;

  [[nodiscard]] bool takes(const std::string& engine) const override;
  Result<ChunkPass> plan(const Manifest& manifest) override;
  Status prepare(const Manifest& manifest, const std::string& unique) override;
  void expect(const std::vector<std::string>& engines) override;
  void answered(const std::string& engine, std::size_t chunks) override;

 private:
  Status makeSegment();
  Status putChecked(const TensorSpec& spec, const TensorView& view, Deadline deadline);
  Status checkPut(const std::string& what, const TensorSpec& spec, const TensorView& view) const;
  Status copyIn(TensorReader& reader, const std::string& what, Deadline deadline);
  Status closeChunk(Deadline deadline);
  [[nodiscard]] std::uint64_t bytesBefore(std::size_t chunk) const;

  const ShmOptions options_;
  Answers answers_;
  std::atomic<bool> opened_{false};
  std::vector<PlaneEngine> announced_;  ///< control thread

  mutable std::mutex mutex_;  ///< guards what follows, between the caller's and the control thread
  std::unique_ptr<Segment> segment_;
  std::string unique_;  ///< empty: this rank does not pack
  std::vector<Chunk> chunks_;
  Layout layout_;
  bool updating_ = false;
  std::size_t packed_ = 0;  ///< chunks of the pass that are complete

  // The pass under way; only the caller thread.
  std::size_t next_ = 0;      ///< index of the next tensor
  std::uint64_t filled_ = 0;  ///< bytes in the open chunk
  Status passFault_;
  std::atomic<std::uint64_t> casts_{0};
};

}  // namespace pushrod::transports::shm
