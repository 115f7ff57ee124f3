// SPDX-License-Identifier: Apache-2.0
#include "tools/sources/checkpoint_source.h"

#include <barrier>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/scratch_folder.h"

namespace pushrod::tools {
namespace {

using ::testing::HasSubstr;
using testing::safetensors;
using testing::ScratchFolder;

TEST(Share, EveryByteBelongsToExactlyOneRank) {
  for (const std::uint64_t total : {0ULL, 1ULL, 3ULL, 4ULL, 7ULL, 1000ULL, 1ULL << 40}) {
    for (int size = 1; size <= 9; ++size) {
      std::uint64_t next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const Share share = shareOf(total, rank, size);
        EXPECT_EQ(share.offset, next);
        EXPECT_GE(share.bytes, total / static_cast<std::uint64_t>(size));
        EXPECT_LE(share.bytes, total / static_cast<std::uint64_t>(size) + 1);
        next += share.bytes;
      }
      EXPECT_EQ(next, total);
    }
  }
}

TEST(Share, TheLongerSharesComeFirst) {
  EXPECT_EQ(shareOf(10, 0, 4), (Share{0, 3}));
  EXPECT_EQ(shareOf(10, 1, 4), (Share{3, 3}));
  EXPECT_EQ(shareOf(10, 2, 4), (Share{6, 2}));
  EXPECT_EQ(shareOf(10, 3, 4), (Share{8, 2}));
  EXPECT_EQ(shareOf(2, 3, 4), (Share{2, 0}));
}

/// Copies every rank's share to all others through the memory that the threads share.
class ThreadRanks {
 public:
  explicit ThreadRanks(int size) : size_(size), barrier_(size), spans_(std::size_t(size)) {}

  class Member final : public ShareGather {
   public:
    Member(ThreadRanks& ranks, int rank) : ranks_(ranks), rank_(rank) {}

    [[nodiscard]] int rank() const override { return rank_; }

    [[nodiscard]] int size() const override { return ranks_.size_; }

    Status gather(std::span<std::byte> whole) override {
      ranks_.spans_[std::size_t(rank_)] = whole;
      ranks_.barrier_.arrive_and_wait();
      for (int other = 0; other < ranks_.size_; ++other) {
        const Share share = shareOf(whole.size(), other, ranks_.size_);
        if (other != rank_ && share.bytes > 0) {
          std::memcpy(whole.data() + share.offset,
                      ranks_.spans_[std::size_t(other)].data() + share.offset,
                      share.bytes);
        }
      }
      ranks_.barrier_.arrive_and_wait();
      return {};
    }

    bool abort() noexcept override { return true; }

    bool recover() override { return true; }

    void renew() override {}

   private:
    ThreadRanks& ranks_;
    int rank_;
  };

 private:
  int size_;
  std::barrier<> barrier_;
  std::vector<std::span<std::byte>> spans_;
};

std::map<std::string, std::string> onePass(WeightSource& source) {
  std::map<std::string, std::string> seen;
  EXPECT_TRUE(source.begin().ok());
  for (;;) {
    auto item = source.next();
    EXPECT_TRUE(item.ok()) << item.status().message();
    if (!item || !*item) {
      return seen;
    }
    const TensorView& view = **item;
    const auto count = std::size_t(*elementCount(view.shape)) * itemSize(view.dtype);
    seen[std::string(view.name)] = std::string(static_cast<const char*>(view.data), count);
  }
}

constexpr std::string_view kHeader = R"({"a":{"dtype":"U8","shape":[7],"data_offsets":[0,7]},)"
                                     R"("none":{"dtype":"F32","shape":[0],"data_offsets":[7,7]},)"
                                     R"("s":{"dtype":"I8","shape":[],"data_offsets":[7,8]},)"
                                     R"("z":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]}})";

TEST(CheckpointSource, EveryRankSeesEveryByteInEveryPass) {
  const ScratchFolder folder;
  folder.write("model.safetensors", safetensors(kHeader, "abcdefghijklmnopqrst"));
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const std::map<std::string, std::string> expected = {
      {"a", "abcdefg"}, {"none", ""}, {"s", "h"}, {"z", "ijklmnopqrst"}};
  constexpr int kRanks = 3;
  ThreadRanks ranks(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRanks::Member gather(ranks, rank);
      CheckpointSource source(**checkpoint, gather);
      const auto manifest = source.manifest();
      ASSERT_TRUE(manifest.ok());
      EXPECT_EQ(*manifest, (*checkpoint)->manifest());
      EXPECT_EQ(onePass(source), expected);
      EXPECT_EQ(onePass(source), expected);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(CheckpointSource, AChangeDuringThePassFailsItBeforeItsEnd) {
  const ScratchFolder folder;
  const std::string path =
      folder.write("model.safetensors", safetensors(kHeader, "abcdefghijklmnopqrst"));
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok());
  SoloGather gather;
  CheckpointSource source(**checkpoint, gather);
  ASSERT_TRUE(source.begin().ok());
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(source.next().ok());
  }
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  const auto end = source.next();
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.status().code(), Code::kDataMismatch);
  EXPECT_EQ(source.begin().code(), Code::kDataMismatch);
  EXPECT_FALSE(source.manifest().ok());
}

class BrokenGather final : public ShareGather {
 public:
  [[nodiscard]] int rank() const override { return 0; }

  [[nodiscard]] int size() const override { return 2; }

  Status gather(std::span<std::byte> /*whole*/) override {
    return {Code::kUnavailable, "rank 1 is gone"};
  }

  bool abort() noexcept override { return false; }

  bool recover() override { return false; }

  void renew() override {}
};

TEST(CheckpointSource, AFailedGatherNamesTheTensorAndRecoveryIsTheGathers) {
  const ScratchFolder folder;
  folder.write("model.safetensors", safetensors(kHeader, "abcdefghijklmnopqrst"));
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok());
  BrokenGather gather;
  CheckpointSource source(**checkpoint, gather);
  EXPECT_EQ(source.next().status().code(), Code::kInternal);
  ASSERT_TRUE(source.begin().ok());
  const auto first = source.next();
  ASSERT_FALSE(first.ok());
  EXPECT_EQ(first.status().code(), Code::kUnavailable);
  EXPECT_THAT(first.status().message(), HasSubstr("tensor a: rank 1 is gone"));
  EXPECT_FALSE(source.abort());
  EXPECT_FALSE(source.recover());
}

}  // namespace
}  // namespace pushrod::tools
