// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/status.h>

#include "tools/sources/strict_json.h"

namespace pushrod::tools {

/// The members of one JSON object of a record. The first thing that is wrong stays in fault(); what
/// is read after it is empty.
class Fields {
 public:
  explicit Fields(const JsonNode& node, std::string where = {});

  [[nodiscard]] bool has(std::string_view key) const { return node_.find(key) != nullptr; }

  /// Required, unless the caller asked has() before.
  std::string text(std::string_view key);
  std::uint64_t number(std::string_view key,
                       std::uint64_t most = std::numeric_limits<std::int64_t>::max());
  int rank(std::string_view key);
  /// Absent: false. A flag that is there is true.
  bool flag(std::string_view key);
  /// Absent: 0, or empty.
  std::uint64_t optionalNumber(std::string_view key,
                               std::uint64_t most = std::numeric_limits<std::int64_t>::max());
  std::string optionalText(std::string_view key);
  std::vector<std::uint64_t> numbers(std::string_view key, std::size_t most);
  /// Joined by commas.
  std::string names(std::string_view key, std::size_t most);
  /// The member as it stands, which must be of that kind; null: it is wrong or not there.
  const JsonNode* node(std::string_view key, JsonNode::Kind kind);
  /// Absent: ok.
  Status status(std::string_view key);

  /// The place of `key`'s text among `count` names.
  template <typename Name>
  std::size_t choice(std::string_view key, std::size_t count, Name name) {
    const std::string word = text(key);
    for (std::size_t i = 0; i < count; ++i) {
      if (name(i) == word) {
        return i;
      }
    }
    fail(key, "is " + quotedName(word) + ", which is none of its values");
    return 0;
  }

  void fail(std::string_view key, const std::string& what);
  /// Fails for the first member that nobody read, then returns what is wrong; empty: nothing.
  std::string finish();

 private:
  const JsonNode& node_;
  std::string where_;
  std::set<std::string, std::less<>> read_;
  std::string fault_;
};

}  // namespace pushrod::tools
