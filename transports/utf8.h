// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace pushrod::transports {

/// Bytes of the well-formed UTF-8 character at `at`; 0 when there is none.
[[nodiscard]] std::size_t utf8Length(std::string_view text, std::size_t at);
[[nodiscard]] bool isUtf8(std::string_view text);
/// The longest well-formed beginning of at most `limit` bytes.
[[nodiscard]] std::string_view utf8Prefix(std::string_view text, std::size_t limit);

}  // namespace pushrod::transports
