// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <pushrod/result.h>
#include <pushrod/tensor.h>

#include "tools/sources/drill_plan.h"

namespace pushrod::tools {

/// The bits of a drill's element in `dtype`, for byte `b` of the tensor's SHAKE128: (b AND 15) - 8
/// in signed and floating types, b AND 15 in unsigned ones, b AND 1 in bool, and two to the power
/// of (b AND 15) - 8 in float8_e8m0fnu, which knows nothing but powers of two. All are exact.
[[nodiscard]] std::uint64_t drillBits(DType dtype, unsigned b);

/// How many different elements a tensor has in memory: fewer than its shape when it is expanded.
[[nodiscard]] std::uint64_t storedElements(const DrillTensor& tensor);
/// Bytes of those in the streamed dtype.
[[nodiscard]] std::uint64_t storedBytes(const DrillTensor& tensor);

/// Writes bytes [offset, offset + out.size()) of the tensor's stored elements in row-major order.
/// `offset` need not be at an element's edge.
[[nodiscard]] Status makeStored(const DrillTensor& tensor,
                                std::string_view version,
                                std::uint64_t offset,
                                std::span<std::byte> out);

/// Bytes of memory that the tensor takes in its layout.
[[nodiscard]] std::uint64_t arrangedBytes(const DrillTensor& tensor);
/// Lays the stored elements out in `out` (arrangedBytes). What lies between strided rows is filled
/// with a pattern.
void arrange(const DrillTensor& tensor,
             std::span<const std::byte> stored,
             std::span<std::byte> out);
/// The strides, in elements, under which the shape is then read; empty: contiguous.
[[nodiscard]] std::vector<std::int64_t> layoutStrides(const DrillTensor& tensor);

}  // namespace pushrod::tools
