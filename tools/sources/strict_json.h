// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pushrod/result.h>

namespace pushrod::tools {

/// A parsed JSON value that keeps the order of members, as checkpoint headers need it. A plain
/// value; numbers that are no 64-bit integers have kind kOtherNumber.
struct JsonNode {
  enum class Kind : std::uint8_t { kNull, kBool, kInteger, kOtherNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool negative = false;          ///< kInteger: value is -magnitude
  std::uint64_t magnitude = 0;    ///< kInteger; kBool: 0 or 1
  double number = 0;              ///< kOtherNumber
  std::string text;               ///< kString
  std::vector<JsonNode> items;    ///< kArray; kObject: the members' values
  std::vector<std::string> keys;  ///< kObject: one per item

  /// The member of that name, null when there is none or this is no object.
  [[nodiscard]] const JsonNode* find(std::string_view key) const;
};

/// Parses one JSON document. Unlike common parsers it refuses a key that appears twice in one
/// object (the usual ones silently keep the last), and it is bounded: at most `maxValues` values,
/// 16 levels. The failure (invalidArgument) says what is wrong and at which byte.
Result<JsonNode> parseStrictJson(std::string_view text, std::size_t maxValues);

/// A name from a file for an error text: quoted, escaped, at most 200 bytes of it.
[[nodiscard]] std::string quotedName(std::string_view text);

}  // namespace pushrod::tools
