// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace pushrod::config {

/// The text of docs/configuration.md, from the key table.
[[nodiscard]] std::string configurationDocument();

}  // namespace pushrod::config
