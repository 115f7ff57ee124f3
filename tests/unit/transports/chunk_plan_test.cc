// SPDX-License-Identifier: Apache-2.0
#include "transports/chunk_plan.h"

#include <gtest/gtest.h>

namespace pushrod::transports {
namespace {

Manifest bytesOf(const std::vector<std::int64_t>& sizes) {
  Manifest manifest;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    manifest.tensors.push_back({"t" + std::to_string(i), DType::kUint8, {sizes[i]}, 0});
  }
  return manifest;
}

struct Row {
  const char* name;
  std::vector<std::int64_t> sizes;
  std::vector<std::size_t> ends;
  std::vector<std::uint64_t> chunks;
};

TEST(ChunkPlan, theRuleOverABufferOf100Bytes) {
  const Row rows[] = {
      {"no tensors", {}, {}, {}},
      {"all in one", {10, 20}, {2}, {30}},
      {"equal to the buffer stays open", {60, 40, 1, 5}, {3, 4}, {101, 5}},
      {"equal to the buffer at the end", {60, 40}, {2}, {100}},
      {"one byte more closes", {101, 1}, {1, 2}, {101, 1}},
      {"closed exactly at the end", {50, 51}, {2}, {101}},
      {"oversize tensor closes the chunk it lands in", {40, 300, 40}, {2, 3}, {340, 40}},
      {"oversize tensors alone", {300, 300}, {1, 2}, {300, 300}},
      {"zero-size tensor inside", {60, 0, 41, 0, 5}, {3, 5}, {101, 5}},
      {"zero-size tensors after the last chunk", {101, 0, 0}, {3}, {101}},
      {"only zero-size tensors", {0, 0}, {2}, {}},
      {"zero-size tensor first", {0, 101}, {2}, {101}},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(stepEnds(bytesOf(row.sizes), 100), row.ends) << row.name;
    EXPECT_EQ(chunkBytes(bytesOf(row.sizes), 100), row.chunks) << row.name;
  }
}

TEST(ChunkPlan, chunksWithinABufferOf100BytesCloseBeforeTheyExceedIt) {
  struct Within {
    const char* name;
    std::vector<std::int64_t> sizes;
    std::vector<Chunk> chunks;
  };

  const Within rows[] = {
      {"no tensors", {}, {}},
      {"all in one", {10, 20}, {{2, 30}}},
      {"equal to the buffer", {60, 40, 1, 5}, {{2, 100}, {4, 6}}},
      {"one byte more opens the next", {60, 41}, {{1, 60}, {2, 41}}},
      {"a tensor as large as the buffer", {1, 100, 1}, {{1, 1}, {2, 100}, {3, 1}}},
      {"a full chunk takes tensors without bytes", {100, 0, 0, 1}, {{3, 100}, {4, 1}}},
      {"tensors without bytes first", {0, 0, 100}, {{3, 100}}},
      {"no bytes at all", {0, 0}, {{2, 0}}},
  };
  for (const Within& row : rows) {
    const auto chunks = chunksWithin(bytesOf(row.sizes), 100);
    ASSERT_TRUE(chunks.ok()) << row.name;
    EXPECT_EQ(*chunks, row.chunks) << row.name;
  }
  EXPECT_EQ(chunksWithin(bytesOf({100, 101}), 100).status().code(), Code::kInvalidArgument);
}

TEST(ChunkPlan, fieldReportOfOversizeWeights) {
  // Buffer 1 MiB; 0.4, 3.0, 0.4, 1.0 MiB and 1 MiB plus one byte.
  const std::int64_t mib = 1 << 20;
  const Manifest manifest = bytesOf({mib * 4 / 10, 3 * mib, mib * 4 / 10, mib, mib + 1});
  EXPECT_EQ(stepEnds(manifest, 1 << 20), (std::vector<std::size_t>{2, 4, 5}));
}

}  // namespace
}  // namespace pushrod::transports
