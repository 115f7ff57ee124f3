// SPDX-License-Identifier: Apache-2.0
#include "transports/tensor_bytes.h"

#include <algorithm>

#include "transports/pack.h"

namespace pushrod::transports {

void forEachPiece(const TensorSpec& spec,
                  const TensorView& view,
                  std::vector<std::byte>& scratch,
                  const std::function<void(std::span<const std::byte>)>& take) {
  if (view.strides.empty() && view.dtype == spec.dtype) {
    // As it stands: nothing to copy.
    if (const std::uint64_t bytes = spec.bytes(); bytes != 0) {
      take(std::span<const std::byte>(static_cast<const std::byte*>(view.data), bytes));
    }
    return;
  }
  TensorReader reader(view, spec.dtype);
  while (reader.remaining() != 0) {
    // The piece is read once more, so it should still be in the cache.
    const auto piece = std::min<std::uint64_t>(reader.goodPiece(true), reader.remaining());
    scratch.resize(std::max<std::size_t>(scratch.size(), piece));
    const std::size_t bytes = reader.read(std::span<std::byte>(scratch.data(), piece));
    take(std::span<const std::byte>(scratch.data(), bytes));
  }
}

}  // namespace pushrod::transports
