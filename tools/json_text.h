// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pushrod::tools {

/// JSON laid out for people: one member per line, two spaces per level, lists of plain values on
/// one line. nullopt when it is no JSON.
[[nodiscard]] std::optional<std::string> prettyJson(std::string_view text);

}  // namespace pushrod::tools
