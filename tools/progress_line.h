// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include <pushrod/coordinator.h>

namespace pushrod::tools {

/// "stream  45%  14.4 MiB of 32.0 MiB  1.20 GB/s  engines 3/3"; "  attempt 2" behind it in a
/// resend.
[[nodiscard]] std::string progressText(const PushProgress& progress, double bytesPerSecond);

/// One line on standard error that follows a push, for people at a terminal. update() only keeps
/// the news; the object's own thread writes, so that a stopped terminal stops nobody else.
class ProgressLine {
 public:
  ProgressLine();
  /// Clears the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Any thread; returns at once.
  void update(const PushProgress& progress);

  /// Whether standard error is a terminal.
  [[nodiscard]] static bool wanted();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  PushProgress latest_;
  bool fresh_ = false;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace pushrod::tools
