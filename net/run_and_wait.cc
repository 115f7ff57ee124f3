// SPDX-License-Identifier: Apache-2.0
#include "net/run_and_wait.h"

#include <future>

namespace pushrod::net {

void runAndWait(IoExecutor& executor, const std::function<void()>& task) {
  if (executor.onThread()) {
    task();
    return;
  }
  std::promise<void> done;
  std::future<void> ended = done.get_future();
  executor.post([&task, &done] {
    task();
    done.set_value();
  });
  ended.wait();
}

}  // namespace pushrod::net
