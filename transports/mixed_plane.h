// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include <pushrod/data_plane.h>

#include "transports/chunk_updates.h"

namespace pushrod::transports {

/// Two planes as one, for a push whose engines use two transports: every tensor goes to both. The
/// engines that `chunks` takes belong to `chunked`, the others to `streamed`; `chunks` is the other
/// half of `chunked`.
class MixedPlane final : public DataPlane {
 public:
  MixedPlane(std::unique_ptr<DataPlane> streamed,
             std::unique_ptr<DataPlane> chunked,
             const ChunkUpdates& chunks);

  [[nodiscard]] TransportKind kind() const override { return TransportKind::kMixed; }

  Result<std::vector<std::string>> announce(const ChannelSpec& spec) override;
  [[nodiscard]] bool ready() const override;
  Status open(Deadline deadline) override;
  /// Of the streamed engines.
  Result<std::string> updateInfo(const Manifest& manifest) override;
  Status begin(const Manifest& manifest) override;
  Status put(const TensorSpec& spec, const TensorView& view, Deadline deadline) override;
  Status flush(Deadline deadline) override;
  void interrupt(const Status& reason) noexcept override;
  void abort(const Status& reason) noexcept override;
  [[nodiscard]] std::uint64_t bytesSent(std::size_t engine) const override;

  [[nodiscard]] std::uint64_t casts() const override {
    return streams_ ? streamed_->casts() : chunked_->casts();
  }

  [[nodiscard]] std::uint64_t bufferBytes() const override;
  [[nodiscard]] std::uint64_t inFlightBytes() const override;
  void releaseBuffers() override;

 private:
  /// An engine's plane and its place there.
  struct Part {
    DataPlane* plane;
    std::size_t index;
  };

  std::unique_ptr<DataPlane> streamed_;
  std::unique_ptr<DataPlane> chunked_;
  const ChunkUpdates& chunks_;
  std::vector<Part> parts_;  ///< control thread
  /// Whether a plane has engines in this channel; one that has none is left alone.
  bool streams_ = false;
  bool shares_ = false;
};

}  // namespace pushrod::transports
