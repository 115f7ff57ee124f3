// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <pushrod/result.h>

namespace pushrod::tools {

/// `count` small integers that are a pure function of (name, seed, version): element i is
/// (byte i of SHAKE128(name NUL seed NUL version) AND 15) - 8, seed as decimal text. Exact in every
/// signed and floating type.
Result<std::vector<std::int8_t>> madeValues(std::string_view name,
                                            std::uint64_t seed,
                                            std::string_view version,
                                            std::size_t count);

/// A bfloat16's bits for a value of madeValues, exactly.
[[nodiscard]] std::uint16_t bfloat16Bits(std::int8_t value);

}  // namespace pushrod::tools
