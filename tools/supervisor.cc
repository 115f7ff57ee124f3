// SPDX-License-Identifier: Apache-2.0
#include "tools/supervisor.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <system_error>

#include "tools/descriptor.h"

namespace pushrod::tools {
namespace {

/// After a second order, or one that nobody obeyed, children get no more time than this.
constexpr Duration kLastGrace = std::chrono::seconds(2);

/// Takes over the signals of a supervisor for its lifetime.
class SupervisorSignals {
 public:
  SupervisorSignals() {
    set_ = stopSignals();
    ::sigaddset(&set_, SIGCHLD);
    ::sigaddset(&set_, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
    fd_ = Descriptor(::signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  ~SupervisorSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  SupervisorSignals(const SupervisorSignals&) = delete;
  SupervisorSignals& operator=(const SupervisorSignals&) = delete;

  [[nodiscard]] bool valid() const { return fd_.valid(); }

  /// Waits until a signal is there or `deadline` passes.
  void wait(Deadline deadline) const {
    const SteadyClock clock;
    // A child can end between two looks, so even an endless wait looks again now and then.
    constexpr Duration kLongest = std::chrono::seconds(1);
    pollfd entry{fd_.get(), POLLIN, 0};
    ::poll(&entry, 1, static_cast<int>(std::min(deadline.remaining(clock), kLongest).count()));
  }

  /// The next signal that has arrived, 0: none.
  [[nodiscard]] int next() const {
    signalfd_siginfo info = {};
    const ssize_t got = ::read(fd_.get(), &info, sizeof(info));
    return got == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t set_ = {};
  sigset_t before_ = {};
  Descriptor fd_;
};

class Supervision {
 public:
  explicit Supervision(const SuperviseOptions& options)
      : options_(options),
        deadline_(options.limit > Duration::zero() ? Deadline::after(clock_, options.limit)
                                                   : Deadline::never()) {}

  Result<SuperviseResult> run() {
    if (!signals_.valid()) {
      return Status(Code::kUnavailable,
                    "no descriptor for signals: " + std::generic_category().message(errno));
    }
    for (int rank = 0; rank < options_.ranks; ++rank) {
      Result<std::unique_ptr<ChildProcess>> child =
          ChildProcess::start({.command = options_.command(rank)});
      if (!child) {
        return child.status().prefixed("rank " + std::to_string(rank));
      }
      children_.push_back(std::move(*child));
    }
    while (reap() > 0) {
      signals_.wait(nextWake().earliest(deadline_));
      wake();
      for (int signal = signals_.next(); signal != 0; signal = signals_.next()) {
        handle(signal);
      }
      if (deadline_.passed(clock_)) {
        for (const auto& child : children_) {
          child->kill();
        }
        // Killed children end soon; until then look again at a calm pace.
        deadline_ = Deadline::after(clock_, std::chrono::milliseconds(100));
      }
    }
    SuperviseResult result;
    result.signal = orders_.first();
    for (const auto& child : children_) {
      result.ends.push_back(*child->poll());
    }
    return result;
  }

 private:
  /// Collects ended children; returns how many still run.
  std::size_t reap() {
    std::size_t running = 0;
    for (const auto& child : children_) {
      running += child->poll() ? 0U : 1U;
    }
    if (running < children_.size() && !firstEnded_) {
      limitTo(stragglerLimit(), firstEnded_);
    }
    return running;
  }

  /// What the children that still run may take, now that one has ended.
  Duration stragglerLimit() {
    Duration more = Duration::zero();
    for (std::size_t rank = 0; options_.stragglerMore && rank < children_.size(); ++rank) {
      if (!children_[rank]->poll()) {
        more = std::max(more, options_.stragglerMore(static_cast<int>(rank)));
      }
    }
    return options_.straggler + more;
  }

  /// Children that stop themselves are to be woken; returns when the next one is.
  Deadline nextWake() {
    Deadline next = Deadline::never();
    if (!options_.wakeAfter) {
      return next;
    }
    wakes_.resize(children_.size(), Deadline::never());
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      if (children_[rank]->stopped()) {
        const auto after = options_.wakeAfter(static_cast<int>(rank));
        wakes_[rank] = after ? Deadline::after(clock_, *after) : Deadline::never();
      }
      next = next.earliest(wakes_[rank]);
    }
    return next;
  }

  void wake() {
    for (std::size_t rank = 0; rank < wakes_.size(); ++rank) {
      if (wakes_[rank].passed(clock_)) {
        wakes_[rank] = Deadline::never();
        children_[rank]->send(SIGCONT);
      }
    }
  }

  void handle(int signal) {
    if (signal == SIGCHLD) {
      return;
    }
    if (signal == SIGUSR1) {
      for (const auto& child : children_) {
        child->send(signal);
      }
      return;
    }
    const StopOrders::Order order = orders_.deliver(signal, clock_.now());
    if (order == StopOrders::Order::kSame) {
      return;
    }
    for (const auto& child : children_) {
      child->send(signal);
    }
    bool once = false;
    limitTo(order == StopOrders::Order::kFirst ? options_.straggler + kLastGrace : kLastGrace,
            once);
  }

  /// Brings the deadline forward, once per `done`.
  void limitTo(Duration limit, bool& done) {
    if (!done) {
      done = true;
      deadline_ = deadline_.earliest(Deadline::after(clock_, limit));
    }
  }

  const SuperviseOptions& options_;
  SteadyClock clock_;
  SupervisorSignals signals_;
  StopOrders orders_;
  Deadline deadline_;
  bool firstEnded_ = false;
  std::vector<Deadline> wakes_;  ///< of children that stopped themselves
  std::vector<std::unique_ptr<ChildProcess>> children_;
};

}  // namespace

void holdSignals() {
  sigset_t set = stopSignals();
  ::sigaddset(&set, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

sigset_t stopSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM}) {
    ::sigaddset(&set, signal);
  }
  // nohup and the like: the caller wants the push to outlive the terminal.
  struct sigaction hangup = {};
  if (::sigaction(SIGHUP, nullptr, &hangup) != 0 || hangup.sa_handler != SIG_IGN) {
    ::sigaddset(&set, SIGHUP);
  }
  return set;
}

StopOrders::Order StopOrders::deliver(int signal, TimePoint now) {
  constexpr Duration kSameOrder = std::chrono::seconds(1);
  const bool same = signal == last_ && now - at_ < kSameOrder;
  if (same) {
    return Order::kSame;
  }
  last_ = signal;
  at_ = now;
  if (first_ == 0) {
    first_ = signal;
    return Order::kFirst;
  }
  return Order::kFurther;
}

Result<SuperviseResult> supervise(const SuperviseOptions& options) {
  return Supervision(options).run();
}

}  // namespace pushrod::tools
