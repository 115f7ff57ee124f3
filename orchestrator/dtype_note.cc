// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/dtype_note.h"

#include "transports/cast.h"

namespace pushrod::orchestrator {

std::string dtypeNote(const Manifest& manifest, const std::string& dtype) {
  const std::optional<DType> kept = dtypeFromName(dtype);
  if (!kept || !transports::isCastable(*kept)) {
    return {};
  }
  std::uint64_t floats = 0;
  std::uint64_t others = 0;
  const TensorSpec* first = nullptr;
  for (const TensorSpec& tensor : manifest.tensors) {
    if (!transports::isCastable(tensor.dtype)) {
      continue;
    }
    floats += tensor.bytes();
    if (tensor.dtype != *kept) {
      others += tensor.bytes();
      first = first == nullptr ? &tensor : first;
    }
  }
  // Some parameters are kept wider on purpose: norms, routers.
  if (first == nullptr || others * 2 <= floats) {
    return {};
  }
  return "keeps its parameters in " + dtype + ", but " + std::to_string(others) + " of " +
         std::to_string(floats) + " bytes are declared otherwise, first " + first->describe() +
         "; to declare them as it keeps them set push.dtypes.default: " + dtype;
}

}  // namespace pushrod::orchestrator
