// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <pushrod/tensor.h>

#include "engines/receiver/sink.h"

namespace pushrod::python {

/// The tensors of one chunk in memory of their own, each at an address that suits every dtype.
class Chunk {
 public:
  struct Tensor {
    TensorSpec spec;
    std::size_t offset = 0;
  };

  /// Null when there is no memory for it.
  static std::shared_ptr<Chunk> create(std::span<const TensorSpec> tensors);

  [[nodiscard]] std::uint8_t* data() const { return memory_.get(); }

  [[nodiscard]] std::size_t size() const { return size_; }

  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  struct Free {
    void operator()(std::uint8_t* memory) const;
  };

  std::vector<Tensor> tensors_;
  std::size_t size_ = 0;
  std::unique_ptr<std::uint8_t, Free> memory_;
};

/// Puts what is received into chunks.
class ChunkSink : public engines::receiver::Sink {
 public:
  /// Called before the memory of a chunk is taken, so that somebody can wait there.
  using Gate = std::function<Status()>;
  using Deliver = std::function<void(std::shared_ptr<Chunk>)>;

  ChunkSink(Gate gate, Deliver deliver) : gate_(std::move(gate)), deliver_(std::move(deliver)) {}

  Status beginChunk(std::span<const TensorSpec> tensors) override;
  void beginTensor(const TensorSpec& tensor) override;
  std::span<std::uint8_t> room(std::uint64_t left) override;
  void took(std::span<const std::uint8_t> bytes) override;
  Status endChunk(std::uint32_t index, std::uint64_t bytes) override;
  Status rest(std::span<const TensorSpec> tensors) override;

 private:
  Gate gate_;
  Deliver deliver_;
  std::shared_ptr<Chunk> chunk_;
  std::size_t begun_ = 0;
  std::uint8_t* place_ = nullptr;
};

}  // namespace pushrod::python
