// SPDX-License-Identifier: Apache-2.0
#include "python/src/interrupt_watch.h"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace pushrod::python {

namespace {

/// The watch that the handler tells; a handler has no other way to find it.
std::atomic<int> toldDescriptor{-1};

struct sigaction formerAction {};

/// A child that was forked during the push has the handler too, and no push.
std::atomic<pid_t> owner{0};

void raiseDescriptor(int descriptor) {
  const std::uint64_t one = 1;
  // An eventfd takes it unless it is full, and then it is raised already.
  [[maybe_unused]] const ssize_t written = ::write(descriptor, &one, sizeof one);
}

}  // namespace

InterruptWatch::InterruptWatch(std::function<void()> onInterrupt)
    : onInterrupt_(std::move(onInterrupt)), told_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (told_ < 0 || ::sigaction(SIGINT, nullptr, &former_) != 0) {
    return;
  }
  formerAction = former_;
  owner = ::getpid();
  toldDescriptor.store(told_);
  thread_ = std::thread([this] { run(); });

  struct sigaction ours {};

  ours.sa_sigaction = &InterruptWatch::handle;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&ours.sa_mask);
  installed_ = ::sigaction(SIGINT, &ours, nullptr) == 0;
}

InterruptWatch::~InterruptWatch() {
  struct sigaction current {};

  const bool known = installed_ && ::sigaction(SIGINT, nullptr, &current) == 0;
  if (known && (current.sa_flags & SA_SIGINFO) != 0 &&
      current.sa_sigaction == &InterruptWatch::handle) {
    ::sigaction(SIGINT, &former_, nullptr);
  }
  toldDescriptor.store(-1);
  if (thread_.joinable()) {
    ended_.store(true);
    raiseDescriptor(told_);
    thread_.join();
  }
  if (told_ >= 0) {
    ::close(told_);
  }
}

void InterruptWatch::handle(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  if (const int descriptor = toldDescriptor.load(); descriptor >= 0 && owner == ::getpid()) {
    raiseDescriptor(descriptor);
  }
  if ((formerAction.sa_flags & SA_SIGINFO) != 0) {
    formerAction.sa_sigaction(signal, info, context);
  } else if (formerAction.sa_handler != SIG_DFL && formerAction.sa_handler != SIG_IGN) {
    formerAction.sa_handler(signal);
  }
  errno = error;
}

void InterruptWatch::run() {
  using Steady = std::chrono::steady_clock;
  constexpr int kPeriodMs = 1000;
  constexpr std::chrono::seconds kSameOrder(1);
  std::optional<Steady::time_point> first;
  while (true) {
    pollfd entry{told_, POLLIN, 0};
    ::poll(&entry, 1, kPeriodMs);
    std::uint64_t count = 0;
    const bool told = ::read(told_, &count, sizeof count) == sizeof count;
    if (ended_.load()) {
      return;
    }
    if (!told) {
      continue;
    }
    if (!first) {
      first = Steady::now();
      onInterrupt_();
    } else if (Steady::now() - *first >= kSameOrder) {
      ::signal(SIGINT, SIG_DFL);
      ::kill(::getpid(), SIGINT);
    }
  }
}

}  // namespace pushrod::python
