// SPDX-License-Identifier: Apache-2.0
#include "python/src/finalizing.h"

#include <atomic>
#include <poll.h>

namespace pushrod::python {

namespace {

std::atomic<bool> finalizing{false};

}  // namespace

bool isFinalizing() noexcept {
  return finalizing.load();
}

void setFinalizing() noexcept {
  finalizing.store(true);
}

void park() noexcept {
  constexpr int kPeriodMs = 60000;
  while (true) {
    ::poll(nullptr, 0, kPeriodMs);
  }
}

}  // namespace pushrod::python
