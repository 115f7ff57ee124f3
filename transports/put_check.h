// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <pushrod/status.h>
#include <pushrod/tensor.h>

namespace pushrod::transports {

/// Whether `view` can be packed as `spec` by a transport that reads host memory. `what` begins the
/// text of a failure and ends with a space.
Status checkView(const std::string& what,
                 const TensorSpec& spec,
                 const TensorView& view,
                 std::string_view transport);

}  // namespace pushrod::transports
