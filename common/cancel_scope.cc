// SPDX-License-Identifier: Apache-2.0
#include "common/cancel_scope.h"

namespace pushrod::common {

bool CancelScope::cancel(const Status& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!reason_.ok()) {
      return false;
    }
    reason_ = reason;
  }
  source_.request_stop();
  return true;
}

Status CancelScope::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

}  // namespace pushrod::common
