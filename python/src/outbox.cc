// SPDX-License-Identifier: Apache-2.0
#include "python/src/outbox.h"

#include <algorithm>
#include <nanobind/nanobind.h>
#include <utility>

#include "python/src/finalizing.h"

namespace pushrod::python {

namespace {

/// More log texts than a push writes; a bound for the case that Python does not run.
constexpr std::size_t kMostQueued = 4096;

}  // namespace

Outbox::Outbox(std::function<void(const Message&)> deliver)
    : deliver_(std::move(deliver)), thread_([this] { run(); }) {}

Outbox::~Outbox() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Outbox::post(Message message) {
  const std::lock_guard lock(mutex_);
  if (message.kind == Message::Kind::kProgress) {
    std::erase_if(queue_, [](const Message& m) { return m.kind == Message::Kind::kProgress; });
  }
  if (queue_.size() >= kMostQueued) {
    ++dropped_;
    return;
  }
  queue_.push_back(std::move(message));
  changed_.notify_all();
}

void Outbox::flush(Duration limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return (queue_.empty() && !delivering_) || ended_; });
}

void Outbox::run() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    if (queue_.empty()) {
      changed_.wait_for(lock, std::chrono::seconds(1));
      continue;
    }
    std::deque<Message> batch = std::exchange(queue_, {});
    if (const std::size_t dropped = std::exchange(dropped_, 0); dropped != 0) {
      Message told;
      told.level = LogLevel::kWarning;
      told.text = std::to_string(dropped) + " log texts were dropped while Python did not run";
      batch.push_back(std::move(told));
    }
    delivering_ = true;
    lock.unlock();
    if (!isFinalizing()) {
      const nanobind::gil_scoped_acquire gil;
      std::for_each(batch.begin(), batch.end(), deliver_);
    }
    lock.lock();
    delivering_ = false;
    changed_.notify_all();
  }
}

void OutboxSink::log(LogLevel level, std::string_view text) {
  if (level < level_) {
    return;
  }
  Message message;
  message.level = level;
  message.text = text;
  outbox_.post(std::move(message));
}

}  // namespace pushrod::python
