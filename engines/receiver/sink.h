// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include <pushrod/status.h>
#include <pushrod/tensor.h>

namespace pushrod::engines::receiver {

/// Takes what a receiver reads, chunk by chunk. Everything is called on the receiving thread, in
/// the order of the declarations; a failure ends the receive with that status.
class Sink {
 public:
  /// Blocks until the sender has gone, or the engine stops.
  using WaitGone = std::function<Status()>;

  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  /// The chunk `index` comes next; `last`: there is none, only the end.
  virtual Status reached(std::uint32_t /*index*/, bool /*last*/, const WaitGone& /*gone*/) {
    return {};
  }

  /// A chunk with these tensors begins.
  virtual Status beginChunk(std::span<const TensorSpec> tensors) = 0;

  /// The next tensor of the chunk begins.
  virtual void beginTensor(const TensorSpec& tensor) = 0;

  /// Where the tensor's next bytes may be written: at least one byte, at most `left`.
  virtual std::span<std::uint8_t> room(std::uint64_t left) = 0;

  /// The tensor's next bytes, in order. They stand at the beginning of room(), or anywhere else
  /// when the receiver found them in memory.
  virtual void took(std::span<const std::uint8_t> bytes) = 0;

  /// All of the chunk is there and sound.
  virtual Status endChunk(std::uint32_t index, std::uint64_t bytes) = 0;

  /// Tensors without bytes that stand behind the last chunk; the update is complete with them.
  virtual Status rest(std::span<const TensorSpec> tensors) = 0;
};

}  // namespace pushrod::engines::receiver
