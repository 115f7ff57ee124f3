// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pushrod {

/// Element types that travel. Sub-byte and complex types are refused.
enum class DType : std::uint8_t {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kFloat8E4m3fn,
  kFloat8E5m2,
  kFloat8E8m0fnu,
};

inline constexpr std::size_t kDTypeCount = 16;

/// Bytes of one element.
[[nodiscard]] std::size_t itemSize(DType dtype);
/// The name engines use (a torch attribute), e.g. "bfloat16".
[[nodiscard]] std::string_view dtypeName(DType dtype);
[[nodiscard]] std::optional<DType> dtypeFromName(std::string_view name);

/// Shape in elements, outermost first; empty for a scalar (one element).
using Shape = std::vector<std::int64_t>;

/// Number of elements; nullopt when an extent is negative or the product does not fit 63 bits.
[[nodiscard]] std::optional<std::int64_t> elementCount(const Shape& shape);
/// "[2, 3]", "[]" for a scalar.
[[nodiscard]] std::string shapeText(const Shape& shape);

/// One entry of a manifest: what will be sent under this name.
struct TensorSpec {
  std::string name;  ///< checkpoint (Hugging Face) name
  DType dtype = DType::kBfloat16;
  Shape shape;
  int owner = 0;  ///< rank that sends it

  /// Bytes on the wire: elements x item size. Precondition: elementCount(shape) has a value.
  [[nodiscard]] std::uint64_t bytes() const;
  /// "name bfloat16 [2, 3]".
  [[nodiscard]] std::string describe() const;
  bool operator==(const TensorSpec&) const = default;
};

/// Everything a push will send, in order. Equal on all ranks.
struct Manifest {
  std::vector<TensorSpec> tensors;

  [[nodiscard]] std::uint64_t bytes() const;
  /// Bytes of the largest tensor.
  [[nodiscard]] std::uint64_t largest() const;
  bool operator==(const Manifest&) const = default;
};

/// Where a tensor's elements live.
struct Device {
  enum class Kind : std::uint8_t { kCpu, kCuda };
  Kind kind = Kind::kCpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};

/// One tensor as a weight source yields it: borrowed memory, valid until the source's next next().
struct TensorView {
  std::string_view name;
  DType dtype = DType::kBfloat16;
  Shape shape;
  std::vector<std::int64_t> strides;  ///< in elements; empty means contiguous, row-major
  const void* data = nullptr;         ///< element [0, ..., 0]; may be null for zero elements
  Device device;
  void* stream = nullptr;  ///< CUDA stream on which `data` is ready; unused on CPU

  [[nodiscard]] std::string describe() const;
};

}  // namespace pushrod
