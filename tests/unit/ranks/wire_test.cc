// SPDX-License-Identifier: Apache-2.0
#include "ranks/wire.h"

#include <gtest/gtest.h>

#include "ranks/link_frame.h"
#include "ranks/run_id.h"
#include "ranks/store_frame.h"
#include "ranks/vote_record.h"
#include "ranks/vote_tree.h"

namespace pushrod::ranks {
namespace {

const VoteKey kKey{7, 2, Phase::kStream, 41};

Ballot failing(const std::string& text, std::uint64_t digest = 0) {
  return {Status(Code::kDataMismatch, text, Outcome::kUnknown), digest, {}};
}

TEST(VoteRecordTest, SurvivesTheWire) {
  VoteRecord record = ballotRecord(kKey, failing("tensor 3 differs", 99), 5);
  record.length = 12345;
  RecordBytes bytes;
  encode(record, bytes);
  const auto back = decode(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->key, kKey);
  EXPECT_EQ(back->failingRank, 5);
  EXPECT_EQ(back->digests, record.digests);
  EXPECT_EQ(back->length, 12345U);
  EXPECT_EQ(back->verdict.first, record.verdict.first);
  EXPECT_EQ(back->verdict.first.origin().rank, 5);
  EXPECT_EQ(back->verdict.first.origin().phase, Phase::kStream);
  EXPECT_EQ(back->verdict.first.origin().epoch, 7U);
  EXPECT_EQ(back->verdict.first.origin().attempt, 2);
}

TEST(VoteRecordTest, LongTextsAreCutAtACharacter) {
  Origin origin;
  origin.engine = std::string(500, 'e');
  std::string text(kMaxMessage - 1, 'x');
  text += "\xc3\xa4 and much more";  // a two-byte character across the limit
  Ballot ballot;
  ballot.status = Status(Code::kInternal, text).at(origin);
  RecordBytes bytes;
  encode(ballotRecord(kKey, ballot, 1), bytes);
  const auto back = decode(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->verdict.first.message(), std::string(kMaxMessage - 1, 'x'));
  EXPECT_EQ(back->verdict.first.origin().engine, std::string(kMaxEngineName, 'e'));
}

TEST(VoteRecordTest, GarbageIsRefused) {
  RecordBytes bytes;
  bytes.fill(std::byte{0xFF});
  EXPECT_FALSE(decode(bytes));
}

TEST(VoteRecordTest, LowestFailingRankWinsInAnyOrder) {
  const VoteRecord two = ballotRecord(kKey, failing("two"), 2);
  const VoteRecord five = ballotRecord(kKey, failing("five"), 5);
  for (const bool reversed : {false, true}) {
    VoteRecord all = ballotRecord(kKey, {}, 0);
    combine(all, reversed ? five : two);
    combine(all, reversed ? two : five);
    EXPECT_EQ(all.failingRank, 2);
    EXPECT_EQ(all.verdict.first.message(), "two");
  }
}

TEST(VoteRecordTest, DigestsNameARankThatDiffersFromRankZero) {
  // digests of ranks 0, 1, 2... -> the rank named
  const std::vector<std::pair<std::vector<std::uint64_t>, int>> cases = {
      {{5, 5, 5}, -1}, {{5, 5, 4}, 2}, {{5, 6, 5}, 1}, {{5, 9, 1}, 1}, {{1, 1, 1, 9, 9}, 3}};
  for (const auto& [digests, expected] : cases) {
    Ballot own;
    own.digest = digests.front();
    VoteRecord all = ballotRecord(kKey, own, 0);
    for (std::size_t rank = 1; rank < digests.size(); ++rank) {
      Ballot other;
      other.digest = digests[rank];
      combine(all, ballotRecord(kKey, other, static_cast<int>(rank)));
    }
    const Verdict verdict = conclude(all, own);
    EXPECT_EQ(verdict.differingRank, expected);
    EXPECT_EQ(verdict.digestsEqual, expected < 0);
  }
}

TEST(TreePlaceTest, EveryRankButTheRootHasAParentThatKnowsIt) {
  for (const int size : {1, 2, 9, 10, 73, 74, 600}) {
    for (int rank = 0; rank < size; ++rank) {
      const TreePlace place = TreePlace::of(rank, size);
      EXPECT_EQ(place.parent < 0, rank == 0);
      EXPECT_LE(place.children.size(), 8U);
      for (const int child : place.children) {
        EXPECT_LT(child, size);
        EXPECT_EQ(TreePlace::of(child, size).parent, rank);
      }
    }
  }
}

TEST(LinkFrameTest, SurvivesTheWireWithinItsBound) {
  LinkFrame frame;
  frame.kind = LinkKind::kVerdict;
  frame.rank = 3;
  frame.epoch = 9;
  frame.key = kKey;
  frame.status = Status(Code::kAborted, std::string(5000, 's'));
  frame.verdict.first = Status(Code::kInternal, std::string(5000, 'v'));
  frame.verdict.decision = Decision::kResend;
  frame.verdict.digestsEqual = false;
  frame.verdict.differingRank = 4;
  std::string bytes = encode(frame);
  const auto body = takeFrame(bytes, kMaxLinkFrame);
  ASSERT_TRUE(body && *body);
  EXPECT_TRUE(bytes.empty());
  const auto back = decodeLinkFrame(**body);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->kind, LinkKind::kVerdict);
  EXPECT_EQ(back->rank, 3);
  EXPECT_EQ(back->epoch, 9U);
  EXPECT_EQ(back->key, kKey);
  EXPECT_EQ(back->verdict.decision, Decision::kResend);
  EXPECT_EQ(back->verdict.differingRank, 4);
  EXPECT_EQ(back->verdict.first.message(), std::string(kMaxMessage, 'v'));
}

TEST(LinkFrameTest, EveryCutOrLongerBodyIsRefused) {
  std::string bytes = encode(LinkFrame());
  const std::string body = bytes.substr(kFrameHeader);
  for (std::size_t size = 0; size < body.size(); ++size) {
    EXPECT_FALSE(decodeLinkFrame(body.substr(0, size))) << size;
  }
  EXPECT_FALSE(decodeLinkFrame(body + "x"));
}

TEST(StoreFrameTest, TakesWholeFramesOnly) {
  std::string input = framed("abc") + framed("") + "\x05";
  EXPECT_EQ(**takeFrame(input, 100), "abc");
  EXPECT_EQ(**takeFrame(input, 100), "");
  EXPECT_FALSE(*takeFrame(input, 100));
  std::string large = framed(std::string(101, 'x'));
  EXPECT_FALSE(takeFrame(large, 100));
}

TEST(StoreFrameTest, EveryCutRequestIsRefused) {
  const std::string body = encodeRequest({StoreOp::kSet, {"key"}, "value"});
  EXPECT_TRUE(decodeRequest(body));
  for (std::size_t size = 0; size < body.size(); ++size) {
    EXPECT_FALSE(decodeRequest(body.substr(0, size))) << size;
  }
  EXPECT_FALSE(decodeRequest(encodeRequest({StoreOp::kSet, {"two", "keys"}, "value"})));
}

TEST(RankListTest, IsShort) {
  EXPECT_EQ(rankList({4}), "rank 4");
  EXPECT_EQ(rankList({1, 2}), "ranks 1, 2");
  EXPECT_EQ(rankList({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 2 more");
}

}  // namespace
}  // namespace pushrod::ranks
