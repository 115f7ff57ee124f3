// SPDX-License-Identifier: Apache-2.0
// Any bytes as a drill plan: refused with a place and a reason, or a plan whose every index and
// number can be used as it stands.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/check.h"
#include "tools/sources/drill_plan.h"
#include "tools/sources/drill_values.h"

namespace {

using namespace pushrod;

void check(const tools::DrillPlan& plan, int ranks) {
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const tools::DrillTensor& tensor = plan.tensors[i];
    PUSHROD_CHECK(!tensor.spec.name.empty() && tensor.spec.owner >= 0);
    PUSHROD_CHECK(elementCount(tensor.spec.shape).has_value());
    PUSHROD_CHECK(tools::arrangedBytes(tensor) >= tools::storedBytes(tensor));
    const auto strides = tools::layoutStrides(tensor);
    PUSHROD_CHECK(strides.empty() || strides.size() == tensor.spec.shape.size());
    PUSHROD_CHECK(!tensor.aliasOf ||
                  (*tensor.aliasOf < i && !plan.tensors[*tensor.aliasOf].aliasOf));
  }
  PUSHROD_CHECK(!plan.pushes.empty());
  for (const tools::DrillPush& push : plan.pushes) {
    PUSHROD_CHECK(!push.version.empty() && push.wait >= Duration::zero());
    for (const tools::DrillFault& fault : push.faults) {
      PUSHROD_CHECK(fault.rank >= 0 && fault.rank < ranks && fault.times > 0);
      PUSHROD_CHECK(!fault.tensor || *fault.tensor < plan.tensors.size());
      const int places = (fault.tensor ? 1 : 0) + (fault.afterLast ? 1 : 0) + (fault.phase ? 1 : 0);
      PUSHROD_CHECK(places == 1 && !fault.describe().empty());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr int kRanks = 4;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plan = tools::parseDrillPlan(text, "plan", kRanks);
  if (plan) {
    check(*plan, kRanks);
  } else {
    PUSHROD_CHECK(plan.status().message().starts_with("plan: "));
  }
  return 0;
}
