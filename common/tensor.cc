// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>

#include <pushrod/tensor.h>

#include "common/check.h"

namespace pushrod {

namespace {

struct DTypeRow {
  std::string_view name;
  std::size_t size;
};

constexpr std::array<DTypeRow, kDTypeCount> kRows = {{{"bool", 1},
                                                      {"uint8", 1},
                                                      {"uint16", 2},
                                                      {"uint32", 4},
                                                      {"uint64", 8},
                                                      {"int8", 1},
                                                      {"int16", 2},
                                                      {"int32", 4},
                                                      {"int64", 8},
                                                      {"float16", 2},
                                                      {"bfloat16", 2},
                                                      {"float32", 4},
                                                      {"float64", 8},
                                                      {"float8_e4m3fn", 1},
                                                      {"float8_e5m2", 1},
                                                      {"float8_e8m0fnu", 1}}};

}  // namespace

std::size_t itemSize(DType dtype) {
  return kRows.at(static_cast<std::size_t>(dtype)).size;
}

std::string_view dtypeName(DType dtype) {
  return kRows.at(static_cast<std::size_t>(dtype)).name;
}

std::optional<DType> dtypeFromName(std::string_view name) {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) {
      return static_cast<DType>(i);
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> elementCount(const Shape& shape) {
  // A zero extent makes the count zero however large the others are.
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      return std::nullopt;
    }
    empty = empty || extent == 0;
  }
  if (empty) {
    return 0;
  }
  for (const std::int64_t extent : shape) {
    if (count > std::numeric_limits<std::int64_t>::max() / extent) {
      return std::nullopt;
    }
    count *= extent;
  }
  return count;
}

std::string shapeText(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

std::uint64_t TensorSpec::bytes() const {
  const auto count = elementCount(shape);
  PUSHROD_CHECK(count.has_value());
  return static_cast<std::uint64_t>(*count) * itemSize(dtype);
}

std::string TensorSpec::describe() const {
  return name + " " + std::string(dtypeName(dtype)) + " " + shapeText(shape);
}

std::string TensorView::describe() const {
  return std::string(name) + " " + std::string(dtypeName(dtype)) + " " + shapeText(shape);
}

std::uint64_t Manifest::bytes() const {
  std::uint64_t total = 0;
  for (const TensorSpec& tensor : tensors) {
    total += tensor.bytes();
  }
  return total;
}

std::uint64_t Manifest::largest() const {
  std::uint64_t most = 0;
  for (const TensorSpec& tensor : tensors) {
    most = std::max(most, tensor.bytes());
  }
  return most;
}

}  // namespace pushrod
