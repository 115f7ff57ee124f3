// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <pushrod/tensor.h>

namespace pushrod::transports {

/// Reads one tensor in host memory as the contiguous row-major bytes of `target`, piece by piece:
/// any strides (transposed, expanded, negative), any shape, cast where the type differs (castable
/// types only). The view's memory and strides were checked before and must stay valid. Not
/// thread-safe.
class TensorReader {
 public:
  TensorReader(const TensorView& view, DType target);

  /// Writes as many whole elements as are left and fit into `piece`; returns their bytes. Zero only
  /// at the end or when the piece holds no element.
  std::size_t read(std::span<std::byte> piece);

  /// Bytes still to come.
  [[nodiscard]] std::uint64_t remaining() const { return (total_ - position_) * targetSize_; }

  [[nodiscard]] bool casting() const { return source_ != target_; }

  /// Whether a finite value became infinite in a cast so far.
  [[nodiscard]] bool overflowed() const { return overflowed_; }

  /// The piece size that keeps the copy fast. `readAgain`: the caller goes over each piece once
  /// more, so it should still be in the cache. A transposed tensor needs many rows at once.
  [[nodiscard]] std::size_t goodPiece(bool readAgain) const;

 private:
  struct Dim {
    std::int64_t extent;
    std::int64_t stride;
  };

  void gather(std::byte* out, std::uint64_t position, std::uint64_t count) const;
  void gatherRowPart(std::byte* out,
                     std::uint64_t row,
                     std::uint64_t column,
                     std::uint64_t count) const;
  void gatherRows(std::byte* out, std::uint64_t row, std::uint64_t rows) const;
  [[nodiscard]] const std::byte* rowStart(std::uint64_t row) const;
  [[nodiscard]] bool contiguous() const;

  DType source_;
  DType target_;
  std::size_t sourceSize_;
  std::size_t targetSize_;
  const std::byte* data_;
  std::vector<Dim> dims_;  ///< merged, outermost first; never empty
  std::uint64_t total_ = 0;
  std::uint64_t position_ = 0;  ///< elements read
  bool overflowed_ = false;
  std::vector<std::byte> scratch_;  ///< a strided tensor's elements before their cast
};

}  // namespace pushrod::transports
