// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace pushrod::common {

/// FNV-1a, 64 bits: to compare texts between ranks that trust each other, never against tampering.
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view text,
                                            std::uint64_t seed = 0xcbf29ce484222325ULL) {
  for (const char c : text) {
    seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return seed;
}

}  // namespace pushrod::common
