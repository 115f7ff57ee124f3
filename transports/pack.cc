// SPDX-License-Identifier: Apache-2.0
#include "transports/pack.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "common/check.h"
#include "transports/cast.h"

namespace pushrod::transports {

namespace {

constexpr std::size_t kCachedPiece = std::size_t{256} << 10;
constexpr std::size_t kPlainPiece = std::size_t{16} << 20;
constexpr std::size_t kStridedPiece = std::size_t{4} << 20;
/// Rows and columns of one tile of a transposed copy: its lines stay in the first-level cache.
constexpr std::uint64_t kTileRows = 32;
constexpr std::uint64_t kTileColumns = 32;

template <std::size_t kSize>
void copyOne(std::byte* to, const std::byte* from) {
  std::memcpy(to, from, kSize);
}

template <std::size_t kSize>
void copyColumn(std::byte* __restrict out,
                const std::byte* __restrict in,
                std::int64_t stride,
                std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    copyOne<kSize>(out + i * kSize, in);
    in += stride;
  }
}

/// Tiles: `rowStride` bytes between rows and `stride` between columns of the source.
template <std::size_t kSize>
void copyTiles(std::byte* __restrict out,
               const std::byte* in,
               std::int64_t rowStride,
               std::int64_t stride,
               std::uint64_t rows,
               std::uint64_t columns) {
  for (std::uint64_t r0 = 0; r0 < rows; r0 += kTileRows) {
    const std::uint64_t r1 = std::min(rows, r0 + kTileRows);
    for (std::uint64_t c0 = 0; c0 < columns; c0 += kTileColumns) {
      const std::uint64_t c1 = std::min(columns, c0 + kTileColumns);
      for (std::uint64_t r = r0; r < r1; ++r) {
        const std::byte* from =
            in + static_cast<std::int64_t>(r) * rowStride + static_cast<std::int64_t>(c0) * stride;
        copyColumn<kSize>(out + (r * columns + c0) * kSize, from, stride, c1 - c0);
      }
    }
  }
}

/// Calls `run` with the item size as a compile-time constant, so that each copy is one move.
template <typename Run>
void withSize(std::size_t size, const Run& run) {
  switch (size) {
    case 1:
      return run(std::integral_constant<std::size_t, 1>());
    case 2:
      return run(std::integral_constant<std::size_t, 2>());
    case 4:
      return run(std::integral_constant<std::size_t, 4>());
    default:
      PUSHROD_CHECK(size == 8);
      return run(std::integral_constant<std::size_t, 8>());
  }
}

std::vector<std::int64_t> rowMajorStrides(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

}  // namespace

TensorReader::TensorReader(const TensorView& view, DType target)
    : source_(view.dtype),
      target_(target),
      sourceSize_(itemSize(view.dtype)),
      targetSize_(itemSize(target)),
      data_(static_cast<const std::byte*>(view.data)) {
  PUSHROD_CHECK(source_ == target_ || (isCastable(source_) && isCastable(target_)));
  const auto count = elementCount(view.shape);
  PUSHROD_CHECK(count.has_value());
  total_ = static_cast<std::uint64_t>(*count);
  if (total_ != 0) {
    const std::vector<std::int64_t> strides =
        view.strides.empty() ? rowMajorStrides(view.shape) : view.strides;
    for (std::size_t i = 0; i < view.shape.size(); ++i) {
      const Dim dim{view.shape[i], strides[i]};
      if (dim.extent == 1) {
        continue;
      }
      if (!dims_.empty() && dims_.back().stride == dim.stride * dim.extent) {
        dims_.back() = {dims_.back().extent * dim.extent, dim.stride};
      } else {
        dims_.push_back(dim);
      }
    }
  }
  if (dims_.empty()) {
    dims_.push_back({static_cast<std::int64_t>(total_), 1});
  }
}

bool TensorReader::contiguous() const {
  return dims_.size() == 1 && dims_[0].stride == 1;
}

std::size_t TensorReader::goodPiece(bool readAgain) const {
  if (!contiguous()) {
    return kStridedPiece;
  }
  return readAgain ? kCachedPiece : kPlainPiece;
}

std::size_t TensorReader::read(std::span<std::byte> piece) {
  std::uint64_t count = std::min<std::uint64_t>(piece.size() / targetSize_, total_ - position_);
  if (count == 0) {
    return 0;
  }
  if (!casting()) {
    gather(piece.data(), position_, count);
  } else if (contiguous()) {
    const std::byte* from = data_ + position_ * sourceSize_;
    overflowed_ = !castElements(source_, from, target_, piece.data(), count) || overflowed_;
  } else {
    // The scratch bounds this read; the caller comes again for the rest.
    count = std::min<std::uint64_t>(count, kStridedPiece / sourceSize_);
    scratch_.resize(std::max(scratch_.size(), static_cast<std::size_t>(count) * sourceSize_));
    gather(scratch_.data(), position_, count);
    overflowed_ =
        !castElements(source_, scratch_.data(), target_, piece.data(), count) || overflowed_;
  }
  position_ += count;
  return static_cast<std::size_t>(count) * targetSize_;
}

const std::byte* TensorReader::rowStart(std::uint64_t row) const {
  std::int64_t offset = 0;
  for (std::size_t i = dims_.size() - 1; i-- > 0;) {
    const auto extent = static_cast<std::uint64_t>(dims_[i].extent);
    offset += static_cast<std::int64_t>(row % extent) * dims_[i].stride;
    row /= extent;
  }
  return data_ + offset * static_cast<std::int64_t>(sourceSize_);
}

void TensorReader::gather(std::byte* out, std::uint64_t position, std::uint64_t count) const {
  if (contiguous()) {
    std::memcpy(out, data_ + position * sourceSize_, count * sourceSize_);
    return;
  }
  const auto columns = static_cast<std::uint64_t>(dims_.back().extent);
  const std::uint64_t column = position % columns;
  std::uint64_t row = position / columns;
  if (column != 0) {
    const std::uint64_t part = std::min(count, columns - column);
    gatherRowPart(out, row, column, part);
    out += part * sourceSize_;
    count -= part;
    row += 1;
  }
  const std::uint64_t rows = count / columns;
  gatherRows(out, row, rows);
  if (count % columns != 0) {
    gatherRowPart(out + rows * columns * sourceSize_, row + rows, 0, count % columns);
  }
}

void TensorReader::gatherRowPart(std::byte* out,
                                 std::uint64_t row,
                                 std::uint64_t column,
                                 std::uint64_t count) const {
  const std::int64_t stride = dims_.back().stride * static_cast<std::int64_t>(sourceSize_);
  const std::byte* from = rowStart(row) + static_cast<std::int64_t>(column) * stride;
  if (dims_.back().stride == 1) {
    std::memcpy(out, from, count * sourceSize_);
    return;
  }
  withSize(sourceSize_, [&](auto size) { copyColumn<size()>(out, from, stride, count); });
}

void TensorReader::gatherRows(std::byte* out, std::uint64_t row, std::uint64_t rows) const {
  const auto columns = static_cast<std::uint64_t>(dims_.back().extent);
  const std::int64_t stride = dims_.back().stride * static_cast<std::int64_t>(sourceSize_);
  // Rows of one run differ by a constant step: they are neighbours in the next dimension.
  const bool flat = dims_.size() == 1;
  const Dim next = flat ? Dim{1, 0} : dims_[dims_.size() - 2];
  const std::int64_t rowStride = next.stride * static_cast<std::int64_t>(sourceSize_);
  const auto extent = static_cast<std::uint64_t>(next.extent);
  while (rows != 0) {
    const std::uint64_t run = std::min(rows, extent - row % extent);
    const std::byte* from = rowStart(row);
    if (dims_.back().stride == 1) {
      for (std::uint64_t r = 0; r < run; ++r) {
        std::memcpy(out + r * columns * sourceSize_, from, columns * sourceSize_);
        from += rowStride;
      }
    } else {
      withSize(sourceSize_,
               [&](auto size) { copyTiles<size()>(out, from, rowStride, stride, run, columns); });
    }
    out += run * columns * sourceSize_;
    row += run;
    rows -= run;
  }
}

}  // namespace pushrod::transports
