// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace pushrod::common {

/// What tells this host from others: the kernel's boot id, equal for all processes of one running
/// system. Empty where it cannot be read.
[[nodiscard]] std::string bootId();

}  // namespace pushrod::common
