// SPDX-License-Identifier: Apache-2.0
#include "ranks/wire.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "ranks/link_frame.h"
#include "ranks/run_id.h"
#include "ranks/store_frame.h"
#include "ranks/tree_place.h"
#include "ranks/vote_record.h"

namespace pushrod::ranks {
namespace {

const VoteKey kKey{7, 2, Phase::kStream, 41};

Ballot failing(const std::string& text, std::uint64_t digest = 0) {
  return {Status(Code::kDataMismatch, text, Outcome::kUnknown), digest, false, {}};
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

// Of many failing ranks the lowest are named, and all are counted, also with the longest texts.
TEST(VoteRecordTest, FailingAndStoppedRanksAreKnown) {
  VoteRecord all = ballotRecord(kKey, {}, 0);
  EXPECT_FALSE(all.verdict.stopped);
  for (int rank = 20; rank > 0; --rank) {
    Ballot ballot = rank % 2 == 0 ? failing(std::string(600, 'x')) : Ballot();
    ballot.stopped = rank == 7;
    combine(all, ballotRecord(kKey, ballot, rank));
  }
  RecordBytes bytes;
  encode(all, bytes);
  const auto back = decode(bytes);
  ASSERT_TRUE(back.ok()) << back.status().message();
  const Verdict verdict = conclude(*back, {});
  EXPECT_EQ(verdict.failing, (std::vector<int>{2, 4, 6, 8, 10, 12, 14, 16}));
  EXPECT_EQ(verdict.failingCount, 10);
  EXPECT_TRUE(verdict.stopped);
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

TEST(TreePlaceTest, LevelsBelowAreOneMoreThanThoseOfTheDeepestChild) {
  for (const int fanOut : {2, 8}) {
    for (const int size : {1, 2, 9, 10, 73, 74, 600}) {
      for (int rank = 0; rank < size; ++rank) {
        int deepest = -1;
        for (const int child : TreePlace::of(rank, size, fanOut).children) {
          deepest = std::max(deepest, levelsBelow(child, size, fanOut));
        }
        EXPECT_EQ(levelsBelow(rank, size, fanOut), deepest + 1) << rank << " of " << size;
      }
    }
  }
  EXPECT_EQ(levelsBelow(0, 10000, 8), 5);
}

TEST(TreePlaceTest, EveryRankButTheRootHasAParentThatKnowsIt) {
  for (const int fanOut : {1, 8, 16}) {
    for (const int size : {1, 2, 9, 10, 73, 74, 600}) {
      for (int rank = 0; rank < size; ++rank) {
        const TreePlace place = TreePlace::of(rank, size, fanOut);
        EXPECT_EQ(place.parent < 0, rank == 0);
        EXPECT_LE(place.children.size(), static_cast<std::size_t>(fanOut));
        for (const int child : place.children) {
          EXPECT_LT(child, size);
          EXPECT_EQ(TreePlace::of(child, size, fanOut).parent, rank);
        }
      }
    }
  }
}

TEST(TreePlaceTest, SubtreeIsTheRankAndWhatIsBelow) {
  // Below rank 1 of a binary tree: 3 and 4, below 3: 7 and 8.
  for (const int below : {1, 3, 4, 7, 8}) {
    EXPECT_TRUE(inSubtree(below, 1, 2)) << below;
  }
  for (const int other : {0, 2, 5, 6, 11}) {
    EXPECT_FALSE(inSubtree(other, 1, 2)) << other;
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
  for (std::size_t i = 0; i < kMaxPositions; ++i) {
    frame.positions.push_back({static_cast<int>(i), kKey, Duration{12000}, Duration{700}});
  }
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
  ASSERT_EQ(back->positions.size(), kMaxPositions);
  EXPECT_EQ(back->positions.back().rank, static_cast<int>(kMaxPositions) - 1);
  EXPECT_EQ(back->positions.back().key, kKey);
  EXPECT_EQ(back->positions.back().age, Duration{12000});
  EXPECT_EQ(back->positions.back().silence, Duration{700});
}

TEST(LinkFrameTest, PiecesOfRecordsAndProgressSurvive) {
  LinkFrame frame;
  frame.kind = LinkKind::kRecordPart;
  frame.rank = 5;
  frame.epoch = 3;
  frame.part.number = 70000;
  frame.part.last = true;
  frame.part.bytes = std::string(kMaxRecordPart, 'r');
  RankPosition position{5, kKey, Duration{1}, Duration{2}};
  position.progress = {4, 10, 9, 77};
  position.still = Duration{1234};
  frame.positions.push_back(position);
  std::string bytes = encode(frame);
  const auto body = takeFrame(bytes, kMaxLinkFrame);
  ASSERT_TRUE(body && *body);
  const auto back = decodeLinkFrame(**body);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->part.number, 70000U);
  EXPECT_TRUE(back->part.last);
  EXPECT_EQ(back->part.bytes, frame.part.bytes);
  ASSERT_EQ(back->positions.size(), 1U);
  EXPECT_EQ(back->positions[0].progress, position.progress);
  EXPECT_EQ(back->positions[0].still, position.still);
}

TEST(LinkFrameTest, UnknownKindsAndLongPiecesAreRefused) {
  LinkFrame frame;
  frame.kind = LinkKind::kRecordPart;
  frame.part.bytes = "piece";
  std::string body = encode(frame).substr(kFrameHeader);
  ASSERT_TRUE(decodeLinkFrame(body));
  body[0] = static_cast<char>(static_cast<int>(LinkKind::kHalt) + 1);
  EXPECT_FALSE(decodeLinkFrame(body));
  body = encode(frame).substr(kFrameHeader);
  // The piece's length stands before it, little-endian.
  body[body.size() - 5 - 3] = '\x0d';
  EXPECT_FALSE(decodeLinkFrame(body));
  body.resize(body.size() - 5);
  EXPECT_FALSE(decodeLinkFrame(body + std::string(0x0d05, 'x'))) << "longer than a piece may be";
}

TEST(LinkFrameTest, TimesOfABrokenRankStayBounded) {
  LinkFrame frame;
  frame.positions.push_back({1, kKey, Duration::max(), Duration{-5}});
  std::string bytes = encode(frame);
  const auto back = decodeLinkFrame(bytes.substr(kFrameHeader));
  ASSERT_TRUE(back);
  ASSERT_EQ(back->positions.size(), 1U);
  EXPECT_LT(back->positions[0].age, std::chrono::hours(24 * 365 * 50));
  EXPECT_EQ(back->positions[0].silence, Duration{0});
}

TEST(LinkFrameTest, EveryCutOrLongerBodyIsRefused) {
  LinkFrame frame;
  frame.positions.push_back({});
  std::string bytes = encode(frame);
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
