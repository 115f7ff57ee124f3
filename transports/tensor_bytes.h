// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <pushrod/tensor.h>

namespace pushrod::transports {

/// Hands `take` the bytes that are sent for `view` as `spec`, in order, piece by piece: in host
/// memory, and checked against `spec` before. `scratch` is room for what must be copied first, kept
/// from one tensor to the next.
void forEachPiece(const TensorSpec& spec,
                  const TensorView& view,
                  std::vector<std::byte>& scratch,
                  const std::function<void(std::span<const std::byte>)>& take);

}  // namespace pushrod::transports
