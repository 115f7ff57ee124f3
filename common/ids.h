// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pushrod::common {

/// 16 bytes from the system's random source.
using Id = std::array<std::uint8_t, 16>;

[[nodiscard]] Id randomId();
/// 32 lower-case hex digits.
[[nodiscard]] std::string toHex(const Id& id);
/// The inverse of toHex.
[[nodiscard]] std::optional<Id> idFromHex(std::string_view text);

}  // namespace pushrod::common
