// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <pushrod/config.h>
#include <pushrod/data_plane.h>

#include "transports/chunk_plan.h"
#include "transports/pack.h"
#include "transports/tcp/buffers.h"
#include "transports/tcp/digest.h"
#include "transports/tcp/monitor.h"
#include "transports/tcp/roster.h"
#include "transports/tcp/sender.h"

namespace pushrod::transports::tcp {

/// The sending side of transport `tcp`: listens for the engines' workers and writes packed chunks
/// of tensors in host memory to each of them. Memory: at most transport.buffers chunks, each as
/// large as the largest chunk of the manifest at hand. Threads: one per channel, from announce() to
/// abort(). The destructor aborts.
class TcpPlane final : public DataPlane {
 public:
  /// `progress` is timeouts.progress.
  TcpPlane(const TransportConfig& config, Duration progress);
  ~TcpPlane() override;

  [[nodiscard]] TransportKind kind() const override { return TransportKind::kTcp; }

  /// With transport.bind "auto" (and for a wildcard) host names of engine URLs are looked up by the
  /// system's resolver; numeric ones and localhost are not.
  Result<std::vector<std::string>> announce(const ChannelSpec& spec) override;
  /// announce() for one source of several: waits for the workers of `roster`, and returns where
  /// each engine's connect. It must have been aborted before.
  Result<std::vector<Endpoint>> listen(Roster roster, const std::vector<PlaneEngine>& engines);
  [[nodiscard]] bool ready() const override;
  Status open(Deadline deadline) override;
  Result<std::string> updateInfo(const Manifest& manifest) override;
  Status begin(const Manifest& manifest) override;
  Status put(const TensorSpec& spec, const TensorView& view, Deadline deadline) override;
  Status flush(Deadline deadline) override;
  void interrupt(const Status& reason) noexcept override;
  void abort(const Status& reason) noexcept override;

  [[nodiscard]] std::uint64_t bytesSent(std::size_t engine) const override;

  [[nodiscard]] std::uint64_t casts() const override {
    return casts_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t bufferBytes() const override;
  [[nodiscard]] std::uint64_t inFlightBytes() const override;
  /// Does nothing while an update is under way.
  void releaseBuffers() override;

 private:
  Status putChecked(const TensorSpec& spec, const TensorView& view, Deadline deadline);
  Status checkPut(const TensorSpec& spec, const TensorView& view) const;
  Status copyIn(TensorReader& reader, const TensorSpec& spec, Deadline deadline);
  Status acquireBuffer(Deadline deadline);
  void closeChunk();
  Status submitEnd(Deadline deadline);
  Status expired(const std::string& what) const;

  [[nodiscard]] PackedBuffer& currentBuffer() { return *buffers_[chunk_ % buffers_.size()]; }

  const TransportConfig config_;
  const Duration progress_;
  const SteadyClock clock_;

  Monitor monitor_;
  Roster roster_;
  std::unique_ptr<Sender> sender_;
  std::atomic<bool> opened_{false};

  // The update under way; only the caller thread.
  PackedRule rule_;
  std::size_t declared_ = 0;  ///< tensors of the manifest
  std::size_t next_ = 0;      ///< index of the next tensor
  std::uint64_t largestChunk_ = 0;
  std::uint32_t chunk_ = 0;      ///< index of the open chunk
  std::uint64_t filled_ = 0;     ///< bytes in it
  std::uint64_t submitted_ = 0;  ///< frames of this channel
  bool haveBuffer_ = false;
  Status passFault_;
  ChunkDigest digest_;
  std::atomic<std::uint64_t> casts_{0};

  mutable std::mutex bufferMutex_;  ///< for updating_ and for sizes against releaseBuffers()
  bool updating_ = false;
  std::vector<std::unique_ptr<PackedBuffer>> buffers_;
};

}  // namespace pushrod::transports::tcp
