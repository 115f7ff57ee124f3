// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <pushrod/tensor.h>

namespace pushrod::transports {

/// Whether a value of this type may be cast when the stream differs from the manifest (ruling P4).
[[nodiscard]] bool isCastable(DType dtype);

/// Casts `count` elements between two different castable types, rounding to nearest, ties to even;
/// a NaN stays a NaN and an infinity an infinity. Neither side needs alignment; they must not
/// overlap. Returns false when a finite value became infinite; every element is written
/// nevertheless.
[[nodiscard]] bool castElements(
    DType from, const std::byte* source, DType to, std::byte* target, std::size_t count);

}  // namespace pushrod::transports
