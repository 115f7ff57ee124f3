// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <mutex>

#include <gtest/gtest.h>

#include "link_rig.h"
#include "ranks/interrupt.h"
#include "ranks/store.h"

namespace pushrod::ranks {
namespace {

/// Keeps what a link said of flight records.
class HeardRecords final : public RecordListener {
 public:
  void onRecordAsked(std::uint64_t epoch) override { add("ask " + std::to_string(epoch)); }

  void onRecordPart(const RecordPart& part) override {
    text += part.bytes;
    if (part.last) {
      add("record of " + std::to_string(part.rank) + " in " + std::to_string(part.number + 1));
    }
  }

  void onRecordEnded(std::uint64_t epoch) override { add("end " + std::to_string(epoch)); }

  void onRankGone(int rank) override { add("gone " + std::to_string(rank)); }

  [[nodiscard]] bool await(const std::string& what) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, std::chrono::steady_clock::now() + kPatience, [&] {
      return std::find(texts_.begin(), texts_.end(), what) != texts_.end();
    });
  }

  std::string text;  ///< of the pieces; to be read once a record is whole

 private:
  void add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    texts_.push_back(what);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> texts_;
};

TEST_F(LinkTest, RecordsComeToRankZeroInPiecesAndItsWordGoesToAll) {
  std::array<HeardRecords, 3> heard;
  connect(3);
  for (int rank = 0; rank < 3; ++rank) {
    node(rank).onThread([&, rank] {
      node(rank).link().setRecordListener(&heard[static_cast<std::size_t>(rank)]);
      return true;
    });
  }
  node(0).onThread([this] {
    node(0).link().askRecords(4);
    return true;
  });
  EXPECT_TRUE(heard[1].await("ask 4"));
  EXPECT_TRUE(heard[2].await("ask 4"));
  const std::string record(2 * kMaxRecordPart + 17, 'r');
  node(2).onThread([&] {
    node(2).link().sendRecord(4, record);
    return node(2).link().reaches(0);
  });
  EXPECT_TRUE(heard[0].await("record of 2 in 3"));
  EXPECT_EQ(heard[0].text, record);
  node(0).onThread([this] {
    node(0).link().endRecords(4);
    return true;
  });
  EXPECT_TRUE(heard[1].await("end 4"));
  nodes_.back().reset();
  EXPECT_TRUE(heard[0].await("gone 2"));
  EXPECT_TRUE(heard[1].await("gone 2"));
  EXPECT_FALSE(node(0).onThread([this] { return node(0).link().reaches(2); }));
  nodes_.clear();  // before what they tell
}

TEST_F(LinkTest, HeartbeatsTellHowFarARankIs) {
  connect(2, Duration{1000});
  const RankProgress progress{static_cast<std::uint8_t>(10), 7, 6, 512};
  node(1).onThread([&] {
    node(1).link().setProgress(progress);
    return true;
  });
  PollPause pause;
  Interrupt never;
  const Deadline limit = in(kPatience);
  const auto seen = [&] {
    const auto positions = node(0).onThread([this] { return node(0).link().positions(); });
    return !positions.empty() && positions[0].progress == progress;
  };
  while (!seen()) {
    ASSERT_TRUE(pause.wait(never, limit));
  }
}

}  // namespace
}  // namespace pushrod::ranks
