// SPDX-License-Identifier: Apache-2.0
#include "tools/signal_watch.h"

#include <cstdint>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <utility>

#include "common/check.h"
#include "tools/exit_code.h"
#include "tools/supervisor.h"

namespace pushrod::tools {
namespace {

void raiseEvent(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof(one));
}

}  // namespace

SignalWatch::SignalWatch()
    : told_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      end_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  sigset_t set = stopSignals();
  ::sigaddset(&set, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  PUSHROD_CHECK(told_.valid() && end_.valid() && signals_.valid());
  thread_ = std::thread([this] { run(); });
}

SignalWatch::~SignalWatch() {
  raiseEvent(end_.get());
  thread_.join();
}

void SignalWatch::onStop(std::function<void(int)> action) {
  const std::lock_guard lock(mutex_);
  action_ = std::move(action);
  if (action_ && received_ != 0) {
    action_(received_);
  }
}

void SignalWatch::onReport(std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  report_ = std::move(action);
}

void SignalWatch::run() {
  StopOrders orders;
  for (;;) {
    pollfd entries[] = {{signals_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
    ::poll(entries, 2, -1);  // Ends with the object: end_ is raised by the destructor.
    if (entries[1].revents != 0) {
      return;
    }
    signalfd_siginfo info = {};
    if (::read(signals_.get(), &info, sizeof(info)) != sizeof(info)) {
      continue;
    }
    const auto signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGUSR1) {
      const std::lock_guard lock(mutex_);
      if (report_) {
        report_();
      }
      continue;
    }
    const StopOrders::Order order = orders.deliver(signal, SteadyClock().now());
    if (order == StopOrders::Order::kFurther) {
      ::_exit(exitOfSignal(signal));
    }
    if (order == StopOrders::Order::kFirst) {
      const std::lock_guard lock(mutex_);
      received_ = signal;
      raiseEvent(told_.get());
      if (action_) {
        action_(signal);
      }
    }
  }
}

const char* signalName(int signal) {
  return signal == SIGINT    ? "SIGINT"
         : signal == SIGTERM ? "SIGTERM"
         : signal == SIGHUP  ? "SIGHUP"
                             : "a signal";
}

}  // namespace pushrod::tools
