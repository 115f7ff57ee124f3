// SPDX-License-Identifier: Apache-2.0
#include "tools/sources/drill_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "tools/sources/made_values.h"

namespace pushrod::tools {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as they travel");

/// A floating format with an implicit leading one.
struct Format {
  unsigned exponentBits;
  unsigned mantissaBits;
  unsigned bias;
};

/// Exact for the small whole numbers of a drill, which have at most four significant bits, and
/// three where they are odd.
std::uint64_t floatBits(int value, const Format& format) {
  if (value == 0) {
    return 0;
  }
  const auto magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
  const auto exponent = static_cast<unsigned>(std::bit_width(magnitude)) - 1;
  const std::uint64_t rest = magnitude - (std::uint64_t{1} << exponent);
  const std::uint64_t mantissa = exponent <= format.mantissaBits
                                     ? rest << (format.mantissaBits - exponent)
                                     : rest >> (exponent - format.mantissaBits);
  const std::uint64_t sign = value < 0 ? 1 : 0;
  return (sign << (format.exponentBits + format.mantissaBits)) |
         (std::uint64_t{exponent + format.bias} << format.mantissaBits) | mantissa;
}

/// Elements of one row of the first dimension.
std::uint64_t rowElements(const Shape& shape) {
  std::uint64_t count = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) {
    count *= static_cast<std::uint64_t>(shape[i]);
  }
  return count;
}

std::uint64_t allElements(const Shape& shape) {
  return static_cast<std::uint64_t>(elementCount(shape).value_or(0));
}

void transpose(const DrillTensor& tensor,
               std::span<const std::byte> stored,
               std::span<std::byte> out) {
  const std::size_t item = itemSize(tensor.stream);
  const Shape& shape = tensor.spec.shape;
  const auto rows = static_cast<std::size_t>(shape[shape.size() - 2]);
  const auto columns = static_cast<std::size_t>(shape[shape.size() - 1]);
  const std::size_t matrix = rows * columns;
  for (std::size_t base = 0; matrix > 0 && base * item < stored.size(); base += matrix) {
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        std::memcpy(out.data() + (base + column * rows + row) * item,
                    stored.data() + (base + row * columns + column) * item,
                    item);
      }
    }
  }
}

}  // namespace

std::uint64_t drillBits(DType dtype, unsigned b) {
  const std::uint64_t low = b & 15U;
  const int value = static_cast<int>(low) - 8;
  switch (dtype) {
    case DType::kBool:
      return low & 1U;
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
      return low;
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    case DType::kFloat16:
      return floatBits(value, {5, 10, 15});
    case DType::kBfloat16:
      return floatBits(value, {8, 7, 127});
    case DType::kFloat32:
      return floatBits(value, {8, 23, 127});
    case DType::kFloat64:
      return floatBits(value, {11, 52, 1023});
    case DType::kFloat8E4m3fn:
      return floatBits(value, {4, 3, 7});
    case DType::kFloat8E5m2:
      return floatBits(value, {5, 2, 15});
    case DType::kFloat8E8m0fnu:
      return 119 + low;  // The exponent's bias is 127.
  }
  return 0;
}

std::uint64_t storedElements(const DrillTensor& tensor) {
  const std::uint64_t all = allElements(tensor.spec.shape);
  return tensor.layout == DrillLayout::kExpanded && all > 0 ? rowElements(tensor.spec.shape) : all;
}

std::uint64_t storedBytes(const DrillTensor& tensor) {
  return storedElements(tensor) * itemSize(tensor.stream);
}

Status makeStored(const DrillTensor& tensor,
                  std::string_view version,
                  std::uint64_t offset,
                  std::span<std::byte> out) {
  if (out.empty()) {
    return {};
  }
  const std::size_t item = itemSize(tensor.stream);
  const std::uint64_t end = offset + out.size();
  // An output of any length begins with the same bytes, so what is behind the share is not made.
  const auto values = madeValues(tensor.spec.name, tensor.seed, version, (end + item - 1) / item);
  if (!values) {
    return values.status().prefixed("tensor " + tensor.spec.name);
  }
  std::array<std::uint64_t, 16> table = {};
  for (unsigned b = 0; b < table.size(); ++b) {
    table[b] = drillBits(tensor.stream, b);
  }
  std::uint64_t at = offset;
  while (at < end) {
    const std::uint64_t element = at / item;
    const std::size_t skip = at % item;
    const std::size_t count = std::min<std::uint64_t>(item - skip, end - at);
    const auto low = static_cast<std::size_t>((*values)[element] + 8);
    const auto* bytes = reinterpret_cast<const std::byte*>(&table[low]);
    std::memcpy(out.data() + (at - offset), bytes + skip, count);
    at += count;
  }
  return {};
}

std::uint64_t arrangedBytes(const DrillTensor& tensor) {
  return storedBytes(tensor) * (tensor.layout == DrillLayout::kStrided ? 2 : 1);
}

void arrange(const DrillTensor& tensor,
             std::span<const std::byte> stored,
             std::span<std::byte> out) {
  if (stored.empty()) {
    return;
  }
  switch (tensor.layout) {
    case DrillLayout::kContiguous:
    case DrillLayout::kExpanded:
      std::copy(stored.begin(), stored.end(), out.begin());
      return;
    case DrillLayout::kTransposed:
      transpose(tensor, stored, out);
      return;
    case DrillLayout::kStrided: {
      const std::size_t row = rowElements(tensor.spec.shape) * itemSize(tensor.stream);
      std::fill(out.begin(), out.end(), std::byte{0xa5});
      for (std::size_t at = 0; at < stored.size(); at += row) {
        std::memcpy(out.data() + 2 * at, stored.data() + at, row);
      }
      return;
    }
  }
}

std::vector<std::int64_t> layoutStrides(const DrillTensor& tensor) {
  const Shape& shape = tensor.spec.shape;
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * shape[i];
  }
  switch (tensor.layout) {
    case DrillLayout::kContiguous:
      return {};
    case DrillLayout::kTransposed:
      strides[shape.size() - 1] = shape[shape.size() - 2];
      strides[shape.size() - 2] = 1;
      break;
    case DrillLayout::kStrided:
      strides[0] *= 2;
      break;
    case DrillLayout::kExpanded:
      strides[0] = 0;
      break;
  }
  return strides;
}

}  // namespace pushrod::tools
