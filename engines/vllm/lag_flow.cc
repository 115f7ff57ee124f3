// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/lag_flow.h"

namespace pushrod::engines::vllm {

void LagFlow::start() {
  if (!state_.canLag()) {
    state_.lag = 0;
    finish(Reply());
    return;
  }
  measureLag([this](const Status& status) { finishWith(status); });
}

}  // namespace pushrod::engines::vllm
