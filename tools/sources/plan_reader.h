// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/deadline.h>

#include "tools/sources/strict_json.h"

namespace pushrod::tools {

/// "pushes[3]", "tensors[0].shape", "seed" where nothing is above.
[[nodiscard]] std::string planPath(const std::string& above, std::string_view key);
[[nodiscard]] std::string planPath(const std::string& above, std::size_t index);

/// Reads values of a plan and collects what is wrong with them, each with its place. Members are
/// given by their object and key; an absent one yields nullopt without a fault, unless it is
/// required.
class PlanReader {
 public:
  static constexpr bool kRequired = true;

  /// Adds a fault. So many are kept; of the rest only the number is told.
  void fault(const std::string& path, const std::string& text);

  [[nodiscard]] bool clean() const { return count_ == 0; }

  /// One line per fault, `name` before each.
  [[nodiscard]] std::string text(const std::string& name) const;

  /// Whether `node` is an object; faults for it and for every key that is not listed.
  bool object(const JsonNode& node,
              const std::string& path,
              std::initializer_list<std::string_view> keys);
  /// A list member; null after a fault or when it is absent.
  const JsonNode* list(const JsonNode& parent,
                       const std::string& above,
                       std::string_view key,
                       bool required = false);
  std::optional<std::string> string(const JsonNode& parent,
                                    const std::string& above,
                                    std::string_view key,
                                    bool required = false);
  std::optional<std::uint64_t> integer(const JsonNode& parent,
                                       const std::string& above,
                                       std::string_view key,
                                       std::uint64_t smallest,
                                       std::uint64_t largest,
                                       bool required = false);
  std::optional<bool> boolean(const JsonNode& parent,
                              const std::string& above,
                              std::string_view key);
  /// A number of seconds, whole or not.
  std::optional<Duration> seconds(const JsonNode& parent,
                                  const std::string& above,
                                  std::string_view key,
                                  Duration largest);

 private:
  const JsonNode* member(const JsonNode& parent,
                         const std::string& above,
                         std::string_view key,
                         bool required);

  std::vector<std::string> faults_;
  std::size_t count_ = 0;
};

/// "a text", "a list".
[[nodiscard]] std::string_view jsonKindText(JsonNode::Kind kind);
/// "a, b or c".
[[nodiscard]] std::string choiceText(const std::vector<std::string_view>& names);

}  // namespace pushrod::tools
