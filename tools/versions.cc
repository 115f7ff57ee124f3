// SPDX-License-Identifier: Apache-2.0
#include "tools/versions.h"

#include "config/text_check.h"

namespace pushrod::tools {

Status checkVersions(const PushOptions& options, const DrillPlan& plan) {
  if (options.plan.empty()) {
    return options.orders ? Status() : config::checkVersion(options.version);
  }
  for (const DrillPush& push : plan.pushes) {
    const Status checked = config::checkVersion(push.version);
    if (!checked) {
      return checked.prefixed(options.plan);
    }
  }
  return {};
}

}  // namespace pushrod::tools
