// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace pushrod::python {

/// Notices SIGINT while Python's main thread is inside a push, where Python itself would see it
/// only at the end. Puts a handler of its own before the process's, which it calls too, so that
/// Python raises KeyboardInterrupt as ever once the push has returned. Create it on the main
/// thread, one at a time.
class InterruptWatch {
 public:
  /// `onInterrupt` runs on the watch's thread, once. A second SIGINT ends the process by that
  /// signal, unless it comes within a second: that is the same order, told twice (P12, P42).
  explicit InterruptWatch(std::function<void()> onInterrupt);
  /// Puts the former handler back, if nobody has put another in its place.
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  static void handle(int signal, siginfo_t* info, void* context);
  void run();

  std::function<void()> onInterrupt_;
  int told_ = -1;  ///< an eventfd: rises with each signal
  std::atomic<bool> ended_{false};

  struct sigaction former_ {};

  bool installed_ = false;
  std::thread thread_;
};

}  // namespace pushrod::python
