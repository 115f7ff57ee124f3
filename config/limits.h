// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <pushrod/config.h>

#include "config/value.h"

namespace pushrod::config {

/// A remark on a sound configuration.
struct Remark {
  Position where;
  std::string text;
};

/// What no single key shows: refuses keys that contradict each other, brings limits below
/// timeouts.push, and remarks on what is legal but unwise. `reader.written` says which keys stand
/// in the text; a key with a fault of its own is not among them and is not judged again.
void checkTogether(Config& config,
                   const TreeNode& root,
                   Reader& reader,
                   std::vector<Remark>& remarks);

}  // namespace pushrod::config
