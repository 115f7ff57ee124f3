// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "tools/descriptor.h"

namespace pushrod::tools {

/// Turns SIGINT, SIGTERM and SIGHUP into one orderly stop (rulings P12 and P42), and SIGUSR1 into
/// a question that changes nothing. Create it before
/// any other thread, since threads take over the signal mask it sets. A second order ends the
/// process at once with 128 + signal.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// What the first order does, on the watch's own thread; at once when one has come already. Null
  /// takes it back; after that it does not run any more.
  void onStop(std::function<void(int signal)> action);

  /// What SIGUSR1 does, each time, on the watch's own thread. Without an action, and after null, it
  /// does nothing.
  void onReport(std::function<void()> action);

  /// The first order's signal, 0: none so far.
  [[nodiscard]] int received() const { return received_.load(); }

  /// Becomes readable, and stays so, with the first order.
  [[nodiscard]] int descriptor() const { return told_.get(); }

 private:
  void run();

  std::mutex mutex_;
  std::function<void(int)> action_;
  std::function<void()> report_;
  std::atomic<int> received_{0};
  Descriptor told_;
  Descriptor end_;
  Descriptor signals_;
  std::thread thread_;
};

/// "SIGTERM" and the like.
[[nodiscard]] const char* signalName(int signal);

}  // namespace pushrod::tools
