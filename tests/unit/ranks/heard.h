// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pushrod/rank_link.h>

#include "local_job.h"

namespace pushrod::ranks {

/// Keeps what a link said, as text; waits for it from the test's thread.
class Heard final : public RankLinkListener {
 public:
  void onStop(int rank, const VoteKey& key, const Status& reason) override {
    add("stop " + std::to_string(rank) + " " + key.toString() + ": " + reason.message());
  }

  void onHalt(int rank, const VoteKey& key, const Status& reason) override {
    add("halt " + std::to_string(rank) + " " + key.toString() + ": " + reason.message());
  }

  void onLost(int rank, const Status& reason) override {
    EXPECT_EQ(reason.origin().rank, rank);
    add("lost " + std::to_string(rank));
  }

  void onVerdict(std::uint64_t epoch, const Verdict& verdict) override {
    add("verdict " + std::to_string(epoch) + " " + verdict.first.message());
  }

  void onOversleep(Duration silence) override {
    EXPECT_GT(silence.count(), 0);
    add("oversleep");
  }

  [[nodiscard]] bool await(const std::string& text) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, std::chrono::steady_clock::now() + kPatience, [&] {
      return std::find(texts_.begin(), texts_.end(), text) != texts_.end();
    });
  }

  [[nodiscard]] std::vector<std::string> texts() {
    const std::lock_guard lock(mutex_);
    return texts_;
  }

 private:
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    texts_.push_back(text);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> texts_;
};

}  // namespace pushrod::ranks
