// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engines/receiver/sink.h"
#include "engines/reference/digest.h"
#include "engines/reference/receive.h"

namespace pushrod::engines::reference {

/// Another content of the same tensor, as a transfer gone wrong would leave it.
void spoil(LoadedTensor& tensor, ByteBudget& budget);

/// Makes digests of what is received, plays the planned misbehaviour, and hands each chunk's
/// tensors on when it is whole.
class LoadingSink : public receiver::Sink {
 public:
  /// The budget must outlive it.
  LoadingSink(ByteBudget& budget, const ReceiveFault& fault, ReceiveHooks hooks)
      : budget_(budget), fault_(fault), hooks_(std::move(hooks)) {}

  Status reached(std::uint32_t index, bool last, const WaitGone& gone) override;
  Status beginChunk(std::span<const TensorSpec> tensors) override;
  void beginTensor(const TensorSpec& tensor) override;
  std::span<std::uint8_t> room(std::uint64_t left) override;
  void took(std::span<const std::uint8_t> bytes) override;
  Status endChunk(std::uint32_t index, std::uint64_t bytes) override;
  Status rest(std::span<const TensorSpec> tensors) override;

 private:
  struct Tensor {
    TensorSpec spec;
    Sha256 digest;
    std::shared_ptr<KeptBytes> kept;
  };

  Status handOn();

  ByteBudget& budget_;
  const ReceiveFault fault_;
  const ReceiveHooks hooks_;
  std::vector<Tensor> chunk_;
  std::vector<std::uint8_t> piece_;
};

}  // namespace pushrod::engines::reference
