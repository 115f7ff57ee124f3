// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pushrod/config.h>

namespace pushrod::config {

/// Refuses, before anything is contacted, a configuration that asks for what this build does not
/// have. Names every such key at once, each as "KEY: VALUE is not in this build".
[[nodiscard]] Status checkSupported(const Config& config);

}  // namespace pushrod::config
