// SPDX-License-Identifier: Apache-2.0
// Any bytes as the manifest and the plan that rank 0 hands out: refused, or a text that comes back
// the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/check.h"
#include "orchestrator/plan.h"
#include "transports/manifest_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pushrod;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto manifest = transports::parseManifestText(text);
  if (manifest) {
    PUSHROD_CHECK(transports::manifestText(*manifest) == text);
    (void)transports::validateManifest(*manifest);
  } else {
    PUSHROD_CHECK(!manifest.status().message().empty());
  }
  const std::uint64_t tensors = size > 0 ? data[0] : 1;
  const auto plan = orchestrator::Plan::decode(text, tensors);
  if (plan) {
    PUSHROD_CHECK(!plan->steps.empty() && plan->steps.back() == tensors);
    const auto again = orchestrator::Plan::decode(plan->encode(), tensors);
    PUSHROD_CHECK(again.ok() && *again == *plan);
  }
  return 0;
}
