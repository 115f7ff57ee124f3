// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <pushrod/config.h>

#include "config/key.h"

namespace pushrod::config {

/// Every key of a configuration, in the order of the document: the one place that reading,
/// defaults, the effective text, the comparison between ranks and docs/configuration.md come from.
[[nodiscard]] const std::vector<Key<Config>>& configKeys();
/// The keys of one entry of engines.list.
[[nodiscard]] const std::vector<Key<EngineConfig>>& engineKeys();
/// All full paths and sections, an engine's as "engines.list[].url", for suggestions.
[[nodiscard]] const std::vector<std::string>& knownPaths();

/// Parts of configKeys().
[[nodiscard]] std::vector<Key<Config>> rankKeys();
[[nodiscard]] std::vector<Key<Config>> engineSectionKeys();
[[nodiscard]] std::vector<Key<Config>> transportKeys();
[[nodiscard]] std::vector<Key<Config>> channelKeys();
[[nodiscard]] std::vector<Key<Config>> pushKeys();
[[nodiscard]] std::vector<Key<Config>> proofKeys();
[[nodiscard]] std::vector<Key<Config>> timeoutKeys();
[[nodiscard]] std::vector<Key<Config>> outputKeys();

/// Reads a list of engines, refusing an entry without url and names or addresses given twice.
/// Returns whether it was read without a fault.
bool readEngineList(std::vector<EngineConfig>& engines,
                    const TreeNode& node,
                    Reader& reader,
                    const std::string& path);
/// The list as a YAML block that begins with a line end, "[]" when empty.
[[nodiscard]] std::string writeEngineList(const std::vector<EngineConfig>& engines,
                                          std::size_t indent);

}  // namespace pushrod::config
