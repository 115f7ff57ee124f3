// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <pushrod/status.h>

namespace pushrod::transports::tcp {

/// Memory for one packed chunk, straight from the system so that giving it back really frees it.
/// Pages cost memory only once they are written. Sizes may be read from any thread; everything else
/// by one thread at a time.
class PackedBuffer {
 public:
  PackedBuffer() = default;

  ~PackedBuffer() { release(); }

  PackedBuffer(const PackedBuffer&) = delete;
  PackedBuffer& operator=(const PackedBuffer&) = delete;

  /// Makes room for `bytes`; the old content is lost when it has to grow.
  Status reserve(std::uint64_t bytes);
  void release();

  [[nodiscard]] std::byte* data() const { return data_; }

  [[nodiscard]] std::uint64_t capacity() const { return capacity_.load(std::memory_order_relaxed); }

  /// The chunk in it: in flight until frame number `frame` is completed.
  void inFlightUntil(std::uint64_t frame, std::uint64_t bytes) {
    bytes_.store(bytes, std::memory_order_relaxed);
    frame_.store(frame, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t frame() const { return frame_.load(std::memory_order_relaxed); }

  [[nodiscard]] std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  std::byte* data_ = nullptr;
  std::atomic<std::uint64_t> capacity_{0};
  std::atomic<std::uint64_t> frame_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace pushrod::transports::tcp
