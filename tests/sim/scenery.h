// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <pushrod/config.h>
#include <pushrod/tensor.h>

namespace pushrod::sim {

/// What every push of the simulation sends.
[[nodiscard]] std::shared_ptr<const Manifest> theManifest();
[[nodiscard]] Config theConfig(int engines);

}  // namespace pushrod::sim
