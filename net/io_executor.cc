// SPDX-License-Identifier: Apache-2.0
#include "net/io_executor.h"

#include <utility>

#include <boost/asio/post.hpp>

namespace pushrod::net {

IoExecutor::IoExecutor() : work_(context_.get_executor()) {
  // What timers and sockets share is made with the first of them: where descriptors are short it
  // throws, which must be here and not on the thread.
  const boost::asio::steady_timer first(context_);
  thread_ = std::thread([this] { context_.run(); });
}

IoExecutor::~IoExecutor() {
  context_.stop();
  thread_.join();
  timers_.clear();
}

void IoExecutor::post(Task task) {
  boost::asio::post(context_, std::move(task));
}

Executor::TimerId IoExecutor::postAt(TimePoint when, Task task) {
  const TimerId id = nextTimer_++;
  auto timer = std::make_unique<boost::asio::steady_timer>(context_, when);
  // A cancelled timer is erased first, so its handler finds no entry and does nothing.
  timer->async_wait([this, id, task = std::move(task)](const boost::system::error_code& error) {
    if (error || timers_.erase(id) == 0) {
      return;
    }
    task();
  });
  timers_.emplace(id, std::move(timer));
  return id;
}

void IoExecutor::cancel(TimerId id) {
  timers_.erase(id);
}

}  // namespace pushrod::net
