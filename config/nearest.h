// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pushrod::config {

/// Letters to insert, delete, change or swap with their neighbour to make `b` of `a`.
[[nodiscard]] std::size_t editDistance(std::string_view a, std::string_view b);

/// What an unknown key most likely means: "the nearest known key is transport.buffer, which belongs
/// under transport". Keys of the same section win over equally near ones elsewhere. `unknown` and
/// `known` are full paths; an entry of the engine list is "engines.list[]".
[[nodiscard]] std::string nearestKeyText(std::string_view unknown,
                                         const std::vector<std::string>& known);

}  // namespace pushrod::config
