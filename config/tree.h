// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/fault.h"

namespace pushrod::config {

/// One value of a YAML document, with its place. A plain tree: no aliases, no tags, at most
/// `kMaxDepth` levels.
struct TreeNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };

  Kind kind = Kind::kNull;
  Position where = {};
  std::string text = {};             ///< kScalar
  bool quoted = false;               ///< kScalar: written in quotes or as a block
  std::vector<TreeNode> items = {};  ///< kSequence
  std::vector<std::pair<TreeNode, TreeNode>> entries =
      {};  ///< kMap, in the order written, duplicates kept
};

inline constexpr std::size_t kMaxDepth = 16;
inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20;

/// Reads the one document of `text`. nullopt after adding at least one fault; an empty text is a
/// kNull node.
[[nodiscard]] std::optional<TreeNode> parseTree(const std::string& text, FaultList& faults);

}  // namespace pushrod::config
