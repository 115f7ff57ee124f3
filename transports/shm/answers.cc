// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/answers.h"

#include <algorithm>

namespace pushrod::transports::shm {

void Answers::expect(const std::vector<std::string>& engines) {
  const std::lock_guard lock(mutex_);
  answered_.clear();
  for (const std::string& engine : engines) {
    answered_[engine] = 0;
  }
}

void Answers::answered(const std::string& engine, std::size_t chunks) {
  const std::lock_guard lock(mutex_);
  const auto found = answered_.find(engine);
  if (found != answered_.end()) {
    found->second = chunks;
    changed_.notify_all();
  }
}

void Answers::interrupt(const Status& reason) {
  const std::lock_guard lock(mutex_);
  interrupted_.merge(reason);
  changed_.notify_all();
}

void Answers::clearInterrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = Status();
}

bool Answers::allHave(std::size_t chunks) const {
  return std::all_of(answered_.begin(), answered_.end(), [chunks](const auto& entry) {
    return entry.second >= chunks;
  });
}

Status Answers::late(std::size_t chunks) const {
  const auto slowest =
      std::min_element(answered_.begin(), answered_.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      });
  Origin origin;
  origin.engine = slowest->first;
  return Status(Code::kDeadlineExceeded,
                "the limit passed while its answer to chunk " + std::to_string(slowest->second) +
                    " was awaited: chunks before " + std::to_string(chunks) +
                    " must be read before their memory is written again",
                Outcome::kUnknown)
      .at(origin);
}

Status Answers::await(std::size_t chunks, Deadline deadline) {
  const SteadyClock clock;
  std::unique_lock lock(mutex_);
  while (interrupted_.ok() && !allHave(chunks)) {
    if (deadline.passed(clock)) {
      return late(chunks);
    }
    changed_.wait_until(lock, deadline.when());
  }
  return interrupted_;
}

std::size_t Answers::of(const std::string& engine) const {
  const std::lock_guard lock(mutex_);
  const auto found = answered_.find(engine);
  return found == answered_.end() ? 0 : found->second;
}

std::size_t Answers::least() const {
  const std::lock_guard lock(mutex_);
  std::size_t least = answered_.empty() ? 0 : answered_.begin()->second;
  for (const auto& entry : answered_) {
    least = std::min(least, entry.second);
  }
  return least;
}

}  // namespace pushrod::transports::shm
