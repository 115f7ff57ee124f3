// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/monitor.h"

#include <chrono>

namespace pushrod::transports::tcp {

void Monitor::reset(std::size_t slots) {
  const std::lock_guard lock(mutex_);
  interrupted_ = Status();
  failure_ = Status();
  interruptFirst_ = false;
  troubled_.store(false, std::memory_order_release);
  present_.assign(slots, false);
  joined_ = 0;
  completed_ = 0;
  bytes_ = std::make_unique<std::atomic<std::uint64_t>[]>(slots);
}

void Monitor::interrupt(const Status& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (interrupted_.ok()) {
      interrupted_ = reason.ok() ? Status(Code::kCancelled, "interrupted") : reason;
      interruptFirst_ = failure_.ok();
    }
    troubled_.store(true, std::memory_order_release);
  }
  changed_.notify_all();
}

void Monitor::clearInterrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = Status();
  troubled_.store(!failure_.ok(), std::memory_order_release);
}

void Monitor::fail(const Status& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.ok()) {
      failure_ = reason;
    }
    troubled_.store(true, std::memory_order_release);
  }
  changed_.notify_all();
}

Status Monitor::trouble() const {
  const std::lock_guard lock(mutex_);
  const bool interrupted = failure_.ok() || (interruptFirst_ && !interrupted_.ok());
  return interrupted ? interrupted_ : failure_;
}

bool Monitor::failed() const {
  const std::lock_guard lock(mutex_);
  return !failure_.ok();
}

void Monitor::joined(std::size_t slot) {
  {
    const std::lock_guard lock(mutex_);
    present_[slot] = true;
    joined_ += 1;
  }
  changed_.notify_all();
}

std::vector<std::size_t> Monitor::missing() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> slots;
  for (std::size_t i = 0; i < present_.size(); ++i) {
    if (!present_[i]) {
      slots.push_back(i);
    }
  }
  return slots;
}

void Monitor::completed(std::uint64_t frames) {
  {
    const std::lock_guard lock(mutex_);
    completed_ = frames;
  }
  changed_.notify_all();
}

std::uint64_t Monitor::completedFrames() const {
  const std::lock_guard lock(mutex_);
  return completed_;
}

template <typename Reached>
Wait Monitor::await(Deadline deadline, const Reached& reached) {
  // The far end keeps the arithmetic of the wait from overflowing.
  const TimePoint limit =
      deadline.earliest(Deadline::at(std::chrono::steady_clock::now() + std::chrono::hours(8760)))
          .when();
  std::unique_lock lock(mutex_);
  const auto troubled = [&] { return !failure_.ok() || !interrupted_.ok(); };
  changed_.wait_until(lock, limit, [&] { return troubled() || reached(); });
  if (troubled()) {
    return Wait::kTrouble;
  }
  return reached() ? Wait::kReached : Wait::kExpired;
}

Wait Monitor::awaitJoined(Deadline deadline) {
  return await(deadline, [&] { return joined_ == present_.size(); });
}

Wait Monitor::awaitCompleted(std::uint64_t frames, Deadline deadline) {
  return await(deadline, [&] { return completed_ >= frames; });
}

void Monitor::addBytes(std::size_t slot, std::uint64_t bytes) {
  bytes_[slot].fetch_add(bytes, std::memory_order_relaxed);
}

void Monitor::clearBytes() {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < present_.size(); ++i) {
    bytes_[i].store(0, std::memory_order_relaxed);
  }
}

std::uint64_t Monitor::bytes(std::size_t slot) const {
  const std::lock_guard lock(mutex_);
  return slot < present_.size() ? bytes_[slot].load(std::memory_order_relaxed) : 0;
}

}  // namespace pushrod::transports::tcp
