// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <pushrod/tensor.h>

namespace pushrod::transports {

/// The members `"names": [...], "dtype_names": [...], "shapes": [...]` of an update_info text,
/// without braces, so that a transport can add its own.
[[nodiscard]] std::string tensorLists(const Manifest& manifest);

}  // namespace pushrod::transports
