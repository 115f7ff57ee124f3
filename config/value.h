// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pushrod/deadline.h>

#include "config/environment.h"
#include "config/fault.h"
#include "config/tree.h"

namespace pushrod::config {

/// What reading one text needs and collects.
struct Reader {
  FaultList& faults;
  const EnvironmentLookup& environment;
  std::map<std::string, Position> written = {};  ///< keys read without a fault, by full path
};

/// Readers of one value: nullopt after adding a fault at the value's place. `path` is the key's.
[[nodiscard]] std::optional<bool> readSwitch(Reader& reader,
                                             const std::string& path,
                                             const TreeNode& node);
[[nodiscard]] std::optional<std::int64_t> readInteger(Reader& reader,
                                                      const std::string& path,
                                                      const TreeNode& node,
                                                      std::int64_t smallest,
                                                      std::int64_t largest);
[[nodiscard]] std::optional<Duration> readDuration(Reader& reader,
                                                   const std::string& path,
                                                   const TreeNode& node,
                                                   Duration smallest,
                                                   Duration largest);
[[nodiscard]] std::optional<std::uint64_t> readSize(Reader& reader,
                                                    const std::string& path,
                                                    const TreeNode& node,
                                                    std::uint64_t smallest,
                                                    std::uint64_t largest);

struct Text {
  std::string value;
  std::string shown;  ///< how messages call it: as written, never what came from the environment
};

[[nodiscard]] std::optional<Text> readText(Reader& reader,
                                           const std::string& path,
                                           const TreeNode& node);
/// Index of the choice that the value names.
[[nodiscard]] std::optional<std::size_t> readChoice(Reader& reader,
                                                    const std::string& path,
                                                    const TreeNode& node,
                                                    const std::vector<std::string>& names);

/// "a section", "a list", "a text" or "no value", for messages.
[[nodiscard]] std::string kindText(const TreeNode& node);
/// Adds the fault "no value" for a null. Returns whether it was one.
bool refuseNull(Reader& reader, const std::string& path, const TreeNode& node);

}  // namespace pushrod::config
