// SPDX-License-Identifier: Apache-2.0
#include "transports/pack.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pushrod::transports {
namespace {

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint32_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24U);
  }
  return bytes;
}

/// Element by element from the definition: index vector times strides.
std::vector<std::byte> slowCopy(const TensorView& view) {
  const std::size_t size = itemSize(view.dtype);
  const auto count = static_cast<std::size_t>(*elementCount(view.shape));
  std::vector<std::byte> out(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t rest = i;
    std::int64_t offset = 0;
    std::int64_t rowMajor = 1;
    for (std::size_t d = view.shape.size(); d-- > 0;) {
      const auto extent = static_cast<std::size_t>(view.shape[d]);
      const std::int64_t stride = view.strides.empty() ? rowMajor : view.strides[d];
      offset += static_cast<std::int64_t>(rest % extent) * stride;
      rest /= extent;
      rowMajor *= view.shape[d];
    }
    std::memcpy(out.data() + i * size,
                static_cast<const std::byte*>(view.data) + offset * static_cast<std::int64_t>(size),
                size);
  }
  return out;
}

std::vector<std::byte> readAll(const TensorView& view, DType target, std::size_t piece) {
  TensorReader reader(view, target);
  std::vector<std::byte> out(reader.remaining());
  std::size_t at = 0;
  while (reader.remaining() != 0) {
    const std::size_t got =
        reader.read(std::span(out).subspan(at, std::min(piece, out.size() - at)));
    EXPECT_GT(got, 0U);
    at += got;
  }
  EXPECT_EQ(reader.read(out), 0U);
  return out;
}

struct Layout {
  const char* name;
  Shape shape;
  std::vector<std::int64_t> strides;
  std::int64_t first = 0;  ///< element offset of [0, ..., 0]
};

const Layout kLayouts[] = {
    {"contiguous", {5, 7, 11}, {}},
    {"contiguous, given strides", {5, 7, 11}, {77, 11, 1}},
    {"transposed", {70, 45}, {1, 70}},
    {"transposed, one tile", {32, 32}, {1, 32}},
    {"batched transpose", {3, 40, 37}, {1480, 1, 40}},
    {"every second row", {20, 16}, {32, 1}},
    {"every third column", {9, 21}, {63, 3}},
    {"expanded rows", {6, 33}, {0, 1}},
    {"expanded columns", {33, 6}, {1, 0}},
    {"expanded to all", {4, 5, 6}, {0, 0, 0}},
    {"scalar", {}, {}},
    {"one element", {1, 1, 1}, {5, 9, 2}},
    {"no elements", {0, 128}, {}},
    {"no elements, strided", {3, 0, 2}, {7, 7, 7}},
    {"reversed", {10, 8}, {-8, -1}, 79},
    {"permuted four", {4, 3, 5, 2}, {1, 40, 8, 4}},
    {"extent of one between", {6, 1, 10}, {10, 999, 1}},
};

TEST(Pack, everyLayoutEqualsTheDefinitionInPiecesOfEverySize) {
  for (const Layout& layout : kLayouts) {
    for (const DType dtype : {DType::kUint8, DType::kBfloat16, DType::kFloat32, DType::kInt64}) {
      const std::size_t size = itemSize(dtype);
      // One byte further, so that nothing is aligned.
      const std::vector<std::byte> memory = pattern(6000 * size + 1);
      TensorView view;
      view.name = "w";
      view.dtype = dtype;
      view.shape = layout.shape;
      view.strides = layout.strides;
      view.data = memory.data() + 1 + static_cast<std::size_t>(layout.first) * size;
      const std::vector<std::byte> expected = slowCopy(view);
      for (const std::size_t piece : {size, 3 * size, 50 * size + 1, std::size_t{1} << 20}) {
        EXPECT_EQ(readAll(view, dtype, piece), expected)
            << layout.name << " " << dtypeName(dtype) << " piece " << piece;
      }
    }
  }
}

TEST(Pack, aPieceTooSmallForAnElementReadsNothing) {
  const std::vector<std::byte> memory = pattern(64);
  TensorView view;
  view.dtype = DType::kFloat64;
  view.shape = {4};
  view.data = memory.data();
  TensorReader reader(view, DType::kFloat64);
  std::byte piece[7];
  EXPECT_EQ(reader.read(piece), 0U);
  EXPECT_EQ(reader.remaining(), 32U);
}

TEST(Pack, castsEveryLayoutAsItsContiguousCopy) {
  std::vector<float> memory(6000);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    memory[i] = static_cast<float>(i) - 3000.0F;
  }
  for (const Layout& layout : kLayouts) {
    TensorView view;
    view.dtype = DType::kFloat32;
    view.shape = layout.shape;
    view.strides = layout.strides;
    view.data = memory.data() + layout.first;
    const std::vector<std::byte> copy = slowCopy(view);
    const std::vector<std::byte> got = readAll(view, DType::kFloat64, 80);
    ASSERT_EQ(got.size(), 2 * copy.size());
    for (std::size_t i = 0; i < copy.size() / 4; ++i) {
      float in = 0;
      double out = 0;
      std::memcpy(&in, copy.data() + 4 * i, 4);
      std::memcpy(&out, got.data() + 8 * i, 8);
      ASSERT_EQ(out, static_cast<double>(in)) << layout.name;
    }
  }
}

TEST(Pack, castsAStridedTensorLargerThanItsScratch) {
  const std::int64_t rows = 1100;
  const std::int64_t columns = 1000;
  std::vector<float> memory(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < memory.size(); ++i) {
    memory[i] = static_cast<float>(i % 251);
  }
  TensorView view;
  view.dtype = DType::kFloat32;
  view.shape = {columns, rows};
  view.strides = {1, columns};
  view.data = memory.data();
  const std::vector<std::byte> got = readAll(view, DType::kBfloat16, std::size_t{16} << 20);
  ASSERT_EQ(got.size(), 2 * memory.size());
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) {
      std::uint32_t wide = 0;
      std::memcpy(reinterpret_cast<char*>(&wide) + 2, got.data() + 2 * (c * rows + r), 2);
      float value = 0;
      std::memcpy(&value, &wide, 4);
      ASSERT_EQ(value, memory[static_cast<std::size_t>(r * columns + c)]);
    }
  }
}

TEST(Pack, reportsAnOverflowOfTheCast) {
  const float values[] = {1.0F, 1e9F, 2.0F};
  TensorView view;
  view.dtype = DType::kFloat32;
  view.shape = {3};
  view.data = values;
  TensorReader reader(view, DType::kFloat16);
  std::byte out[2];
  reader.read(out);
  EXPECT_FALSE(reader.overflowed());
  reader.read(out);
  EXPECT_TRUE(reader.overflowed());
  reader.read(out);
  EXPECT_TRUE(reader.overflowed());
}

}  // namespace
}  // namespace pushrod::transports
