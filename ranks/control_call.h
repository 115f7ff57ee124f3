// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>
#include <memory>
#include <optional>

#include "net/io_executor.h"
#include "net/run_and_wait.h"

namespace pushrod::ranks {

/// Runs `work` on the control thread and returns its result, waiting at most until the deadline;
/// nullopt then. `work` owns what it uses: it may run after this function returned. Inline on the
/// control thread itself.
template <typename Work>
auto onControlThread(net::IoExecutor& executor, Deadline deadline, Work work)
    -> std::optional<decltype(work())> {
  if (executor.onThread()) {
    return work();
  }
  auto promise = std::make_shared<std::promise<decltype(work())>>();
  auto future = promise->get_future();
  executor.post([promise, work = std::move(work)]() mutable { promise->set_value(work()); });
  const auto limit = deadline.remaining(executor);
  if (future.wait_until(std::chrono::steady_clock::now() + limit) != std::future_status::ready) {
    return std::nullopt;
  }
  return future.get();
}

/// Destroys an object that lives on the control thread there and waits for that.
template <typename T>
void destroyOnControlThread(net::IoExecutor& executor, std::unique_ptr<T>& object) {
  net::runAndWait(executor, [&object] { object.reset(); });
}

}  // namespace pushrod::ranks
