// SPDX-License-Identifier: Apache-2.0
#include "transports/put_check.h"

#include "transports/cast.h"

namespace pushrod::transports {

Status checkView(const std::string& what,
                 const TensorSpec& spec,
                 const TensorView& view,
                 std::string_view transport) {
  const bool cast = spec.dtype != view.dtype;
  if (spec.shape != view.shape || !elementCount(spec.shape).has_value() ||
      (cast && !(isCastable(spec.dtype) && isCastable(view.dtype)))) {
    return {Code::kDataMismatch, what + "cannot be filled from '" + view.describe() + "'"};
  }
  if (view.device.kind != Device::Kind::kCpu) {
    return {Code::kInvalidArgument,
            what + "is in device memory, and transport " + std::string(transport) +
                " sends from host memory; copy it to the host in the weight source, or use "
                "transport nccl or ipc"};
  }
  return {};
}

}  // namespace pushrod::transports
