// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

namespace pushrod::engines::vllm {

/// The value of a whole JSON text; nullopt for anything else. Nesting deeper than 32 is refused.
[[nodiscard]] std::optional<boost::json::value> parseJson(std::string_view text);
/// The member of an object; null when `value` is no object or lacks it.
[[nodiscard]] const boost::json::value* member(const boost::json::value& value,
                                               std::string_view key);
/// As member, for a chain of objects.
[[nodiscard]] const boost::json::value* member(const boost::json::value& value,
                                               std::string_view outer,
                                               std::string_view inner);
/// The text when `value` is a non-null JSON string.
[[nodiscard]] std::optional<std::string> stringOf(const boost::json::value* value);
/// The number when `value` is a JSON integer that fits int.
[[nodiscard]] std::optional<int> intOf(const boost::json::value* value);
[[nodiscard]] std::optional<bool> boolOf(const boost::json::value* value);

}  // namespace pushrod::engines::vllm
