// SPDX-License-Identifier: Apache-2.0
#include "ranks/store.h"

#include <algorithm>

namespace pushrod::ranks {

Status PollPause::wait(Interrupt& interrupt, Deadline deadline) {
  constexpr Duration kLongest{50};
  const Duration left = deadline.remaining(SteadyClock());
  if (left == Duration::zero()) {
    return Status(Code::kDeadlineExceeded, "time is up");
  }
  Status stopped = interrupt.waitFor(std::min(pause_, left));
  pause_ = std::min(pause_ * 2, kLongest);
  return stopped;
}

Result<std::string> awaitKey(Store& store,
                             const std::string& key,
                             Interrupt& interrupt,
                             Deadline deadline) {
  PollPause pause;
  while (true) {
    auto values = store.get({key}, deadline);
    if (!values) {
      return values.status();
    }
    if (values->front()) {
      return std::move(*values->front());
    }
    const Status waited = pause.wait(interrupt, deadline);
    if (!waited) {
      return waited;
    }
  }
}

}  // namespace pushrod::ranks
