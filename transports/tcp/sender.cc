// SPDX-License-Identifier: Apache-2.0
// The sending thread's life, its inbox and its poll loop; what it does with a socket stands in
// sender_io.cc.
#include "transports/tcp/sender.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <sys/eventfd.h>
#include <system_error>

#include "common/time_text.h"

namespace pushrod::transports::tcp {

namespace {

/// The loop looks around at least so often, whatever it waits for.
constexpr Duration kLongestPoll = std::chrono::seconds(60);
/// Connections that have not said who they are, beyond one per worker.
constexpr std::size_t kSparePending = 64;

TimePoint now() {
  return std::chrono::steady_clock::now();
}

/// The new thread must not take the signals that the process handles elsewhere.
template <typename Start>
void withSignalsBlocked(const Start& start) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    start();
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

Result<std::unique_ptr<Sender>> Sender::start(const Roster& roster,
                                              std::vector<Listener> listeners,
                                              Duration progress,
                                              Monitor& monitor) {
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) {
    return Status(
        Code::kUnavailable,
        "no event descriptor for the tcp sender: " + std::generic_category().message(errno));
  }
  std::unique_ptr<Sender> sender(
      new Sender(roster, std::move(listeners), progress, monitor, std::move(wake)));
  try {
    withSignalsBlocked(
        [&] { sender->thread_ = std::thread([raw = sender.get()] { raw->run(); }); });
  } catch (const std::system_error& error) {
    return Status(Code::kUnavailable,
                  std::string("the tcp sender's thread cannot be started: ") + error.what());
  }
  return sender;
}

Sender::Sender(const Roster& roster,
               std::vector<Listener> listeners,
               Duration progress,
               Monitor& monitor,
               Fd wake)
    : roster_(roster),
      progress_(progress),
      monitor_(monitor),
      wake_(std::move(wake)),
      listeners_(std::move(listeners)),
      connections_(roster.slots().size()) {}

Sender::~Sender() {
  stop(Status(Code::kAborted, "the sender ended"));
}

void Sender::wake() noexcept {
  const std::uint64_t one = 1;
  // A full counter means that a wake-up is already on its way.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void Sender::submit(const Frame& frame) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(frame);
  }
  wake();
}

void Sender::stop(const Status& reason) noexcept {
  if (!thread_.joinable()) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    stopReason_ = reason;
  }
  wake();
  // The thread's only wait is the poll that was just woken, so this ends at once.
  thread_.join();
}

void Sender::run() {
  while (true) {
    const int timeout = preparePoll();
    const int ready = ::poll(polled_.data(), polled_.size(), timeout);
    if (ready < 0 && errno != EINTR) {
      failed_ = true;
      monitor_.fail(Status(
          Code::kInternal,
          "the tcp sender cannot wait for its sockets: " + std::generic_category().message(errno)));
    }
    if (!takeInbox()) {
      sayGoodbye();
      return;
    }
    if (ready > 0) {
      dispatch();
    }
    expire();
    retireFrames();
  }
}

void Sender::watch(int fd, short events, Watch watch) {
  polled_.push_back({fd, events, 0});
  watches_.push_back(watch);
}

int Sender::preparePoll() {
  polled_.clear();
  watches_.clear();
  TimePoint next = now() + kLongestPoll;
  watch(wake_.get(), POLLIN, {Source::kWake, 0});
  if (listening_ && pending_.size() < connections_.size() + kSparePending) {
    for (std::size_t i = 0; i < listeners_.size(); ++i) {
      watch(listeners_[i].fd.get(), POLLIN, {Source::kListener, i});
    }
  }
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    watch(pending_[i].fd.get(), POLLIN, {Source::kPending, i});
    next = std::min(next, pending_[i].limit);
  }
  for (std::size_t i = 0; i < connections_.size() && !failed_; ++i) {
    const Connection& connection = connections_[i];
    if (!connection.fd.valid()) {
      continue;
    }
    const bool owing = owes(connection);
    const auto events = static_cast<short>(owing ? POLLIN | POLLOUT : POLLIN);
    watch(connection.fd.get(), events, {Source::kConnection, i});
    if (owing) {
      next = std::min(next, connection.lastMoved + progress_);
    }
  }
  const SteadyClock clock;
  return static_cast<int>(Deadline::at(next).remaining(clock).count());
}

bool Sender::takeInbox() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t drained = ::read(wake_.get(), &count, sizeof count);
  std::vector<Frame> arrived;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      return false;
    }
    arrived.swap(inbox_);
  }
  if (!arrived.empty()) {
    const TimePoint when = now();
    for (Connection& connection : connections_) {
      connection.lastMoved = owes(connection) ? connection.lastMoved : when;
    }
    frames_.insert(frames_.end(), arrived.begin(), arrived.end());
  }
  return true;
}

void Sender::dispatch() {
  for (std::size_t i = 0; i < polled_.size(); ++i) {
    const short events = polled_[i].revents;
    const std::size_t index = watches_[i].index;
    if (events == 0) {
      continue;
    }
    switch (watches_[i].source) {
      case Source::kWake:
        break;
      case Source::kListener:
        acceptFrom(listeners_[index]);
        break;
      case Source::kPending:
        readHello(pending_[index]);
        break;
      case Source::kConnection:
        if ((events & ~POLLOUT) != 0) {
          readFrom(index);
        }
        if (!failed_ && (events & POLLOUT) != 0) {
          pump(index);
        }
        break;
    }
  }
  std::erase_if(pending_, [](const Pending& pending) { return !pending.fd.valid(); });
}

void Sender::expire() {
  const TimePoint when = now();
  std::erase_if(pending_, [&](const Pending& pending) { return pending.limit <= when; });
  for (std::size_t i = 0; i < connections_.size() && !failed_; ++i) {
    if (owes(connections_[i]) && connections_[i].lastMoved + progress_ <= when) {
      fault(i,
            Code::kDeadlineExceeded,
            "took no byte for " + common::durationText(progress_) +
                " (timeouts.progress) although it owes reads");
    }
  }
}

void Sender::retireFrames() {
  if (frames_.empty()) {
    return;
  }
  std::uint64_t reached = firstFrame_ + frames_.size();
  for (const Connection& connection : connections_) {
    reached = std::min(reached, connection.frame);
  }
  if (reached > firstFrame_) {
    frames_.erase(frames_.begin(),
                  frames_.begin() + static_cast<std::ptrdiff_t>(reached - firstFrame_));
    firstFrame_ = reached;
    monitor_.completed(reached);
  }
}

void Sender::fault(std::size_t slot, Code code, const std::string& text) {
  const Slot& place = roster_.slots()[slot];
  Origin origin;
  origin.engine = place.engineName;
  failed_ = true;
  monitor_.fail(Status(code, place.label + " " + text, Outcome::kUnknown).at(origin));
}

}  // namespace pushrod::transports::tcp
