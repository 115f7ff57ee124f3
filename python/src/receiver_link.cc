// SPDX-License-Identifier: Apache-2.0
#include "python/src/receiver_link.h"

#include <exception>
#include <utility>

namespace pushrod::python {

namespace {

using engines::receiver::TcpInit;
using engines::receiver::TcpUpdate;

/// How often a waiting thread looks whether it was interrupted.
constexpr auto kLook = std::chrono::milliseconds(100);

Status cancelled() {
  return {Code::kCancelled, "interrupted"};
}

}  // namespace

Status joinSources(Link& link,
                   const TcpInit& init,
                   std::uint32_t rank,
                   const Interrupted& interrupted) {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  Status joined;
  std::thread thread([&] {
    Status status = link.receiver.join(init, rank);
    const std::lock_guard lock(mutex);
    joined = std::move(status);
    ended = true;
    changed.notify_all();
  });
  bool given = false;
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, kLook, [&] { return ended; })) {
    lock.unlock();
    if (interrupted()) {
      given = true;
      link.stop.raise();
    }
    lock.lock();
  }
  lock.unlock();
  thread.join();
  return given ? cancelled() : joined;
}

UpdateReader::UpdateReader(std::shared_ptr<Link> link, TcpUpdate update)
    : link_(std::move(link)), update_(std::move(update)), thread_([this] { run(); }) {}

UpdateReader::~UpdateReader() {
  giveUp();
  thread_.join();
}

void UpdateReader::giveUp() {
  const std::lock_guard lock(mutex_);
  if (!ended_) {
    givenUp_ = true;
    link_->stop.raise();
    changed_.notify_all();
  }
}

void UpdateReader::run() {
  ChunkSink sink([this] { return waitForRoom(); },
                 [this](std::shared_ptr<Chunk> chunk) { deliver(std::move(chunk)); });
  const auto begun = Clock::now();
  Status status;
  try {
    status = link_->receiver.receive(update_, sink);
  } catch (const std::exception& error) {
    link_->receiver.close();
    status = Status(Code::kInternal, error.what());
  }
  const std::lock_guard lock(mutex_);
  reading_ += Clock::now() - begun;
  status_ = std::move(status);
  ended_ = true;
  changed_.notify_all();
}

Status UpdateReader::waitForRoom() {
  const auto begun = Clock::now();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_ == nullptr || givenUp_; });
  reading_ -= Clock::now() - begun;
  return givenUp_ ? cancelled() : Status();
}

void UpdateReader::deliver(std::shared_ptr<Chunk> chunk) {
  const std::lock_guard lock(mutex_);
  ready_ = std::move(chunk);
  changed_.notify_all();
}

std::chrono::duration<double> UpdateReader::reading() const {
  const std::lock_guard lock(mutex_);
  return ended_ ? reading_ : std::chrono::duration<double>(0);
}

Result<std::shared_ptr<Chunk>> UpdateReader::next(const Interrupted& interrupted) {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kLook, [this] { return ready_ != nullptr || ended_; })) {
    lock.unlock();
    if (interrupted()) {
      giveUp();
      return cancelled();
    }
    lock.lock();
  }
  if (ready_ != nullptr) {
    std::shared_ptr<Chunk> chunk = std::move(ready_);
    ready_ = nullptr;
    changed_.notify_all();
    return chunk;
  }
  if (!status_.ok()) {
    return status_;
  }
  return std::shared_ptr<Chunk>();
}

}  // namespace pushrod::python
