// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <pushrod/executor.h>

namespace pushrod::net {

/// The control thread: one io_context, run by one thread that this object owns. Tasks and timers of
/// the Executor seam and all sockets of net and http live on it.
class IoExecutor final : public Executor {
 public:
  /// Starts the thread.
  IoExecutor();
  /// Stops and joins; what is still posted is dropped. Not from the thread itself.
  ~IoExecutor() override;

  [[nodiscard]] TimePoint now() const override { return std::chrono::steady_clock::now(); }

  void post(Task task) override;
  TimerId postAt(TimePoint when, Task task) override;
  void cancel(TimerId id) override;

  /// For net and http only.
  boost::asio::io_context& context() { return context_; }

  /// Whether the caller is on the control thread.
  [[nodiscard]] bool onThread() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::map<TimerId, std::unique_ptr<boost::asio::steady_timer>> timers_;
  TimerId nextTimer_ = 1;
  std::thread thread_;
};

}  // namespace pushrod::net
