// SPDX-License-Identifier: Apache-2.0
#include "transports/update_info.h"

#include "common/log.h"

namespace pushrod::transports {

std::string tensorLists(const Manifest& manifest) {
  std::string names = "\"names\": [";
  std::string dtypes = "], \"dtype_names\": [";
  std::string shapes = "], \"shapes\": [";
  const char* separator = "";
  for (const TensorSpec& tensor : manifest.tensors) {
    names.append(separator).append(common::jsonQuoted(tensor.name));
    dtypes.append(separator).append("\"").append(dtypeName(tensor.dtype)).append("\"");
    shapes.append(separator).append(shapeText(tensor.shape));
    separator = ", ";
  }
  return names + dtypes + shapes + "]";
}

}  // namespace pushrod::transports
