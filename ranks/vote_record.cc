// SPDX-License-Identifier: Apache-2.0
#include "ranks/vote_record.h"

#include <algorithm>
#include <cstring>

#include "common/check.h"
#include "ranks/wire.h"

namespace pushrod::ranks {

VoteRecord ballotRecord(const VoteKey& key, const Ballot& ballot, int rank) {
  VoteRecord record;
  record.key = key;
  record.digests = {ballot.digest, ballot.digest, rank, rank};
  if (!ballot.status.ok()) {
    Origin origin;
    origin.rank = rank;
    origin.phase = key.phase;
    origin.epoch = key.epoch;
    origin.attempt = static_cast<int>(key.attempt);
    record.verdict.first = ballot.status.at(origin);
    record.failingRank = rank;
    record.verdict.failing = {rank};
    record.verdict.failingCount = 1;
  }
  record.verdict.stopped = ballot.stopped;
  return record;
}

void combine(VoteRecord& into, const VoteRecord& other) {
  const bool otherFails = other.failingRank >= 0;
  if (otherFails && (into.failingRank < 0 || other.failingRank < into.failingRank)) {
    into.failingRank = other.failingRank;
    into.verdict.first = other.verdict.first;
  }
  Verdict& all = into.verdict;
  all.stopped = all.stopped || other.verdict.stopped;
  all.failingCount += other.verdict.failingCount;
  all.failing.insert(all.failing.end(), other.verdict.failing.begin(), other.verdict.failing.end());
  std::sort(all.failing.begin(), all.failing.end());
  all.failing.resize(std::min(all.failing.size(), kMostFailing));
  DigestRange& range = into.digests;
  const DigestRange& more = other.digests;
  if (more.smallest < range.smallest) {
    range.smallest = more.smallest;
    range.smallestRank = more.smallestRank;
  } else if (more.smallest == range.smallest) {
    range.smallestRank = std::min(range.smallestRank, more.smallestRank);
  }
  if (more.largest > range.largest) {
    range.largest = more.largest;
    range.largestRank = more.largestRank;
  } else if (more.largest == range.largest) {
    range.largestRank = std::min(range.largestRank, more.largestRank);
  }
}

Verdict conclude(const VoteRecord& all, const Ballot& ballot) {
  Verdict verdict = all.verdict;
  const DigestRange& range = all.digests;
  verdict.digestsEqual = range.smallest == range.largest;
  if (!verdict.digestsEqual) {
    if (range.smallest == ballot.digest) {
      verdict.differingRank = range.largestRank;
    } else if (range.largest == ballot.digest) {
      verdict.differingRank = range.smallestRank;
    } else {
      verdict.differingRank = std::min(range.smallestRank, range.largestRank);
    }
  }
  if (ballot.decide) {
    verdict.decision = ballot.decide(verdict.first);
  } else {
    verdict.decision = verdict.first.ok() ? Decision::kGo : Decision::kFail;
  }
  return verdict;
}

void encode(const VoteRecord& record, RecordBytes& bytes) {
  WireWriter writer;
  writer.u8(static_cast<std::uint8_t>(record.kind));
  writer.key(record.key);
  writer.verdict(record.verdict);
  writer.i32(record.failingRank);
  writer.u64(record.digests.smallest);
  writer.u64(record.digests.largest);
  writer.i32(record.digests.smallestRank);
  writer.i32(record.digests.largestRank);
  writer.u64(record.length);
  PUSHROD_CHECK(writer.bytes().size() <= bytes.size());
  bytes.fill(std::byte{0});
  std::memcpy(bytes.data(), writer.bytes().data(), writer.bytes().size());
}

Result<VoteRecord> decode(const RecordBytes& bytes) {
  WireReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  VoteRecord record;
  const std::uint8_t kind = reader.u8();
  record.kind = static_cast<RecordKind>(kind);
  record.key = reader.key();
  record.verdict = reader.verdict();
  record.failingRank = reader.i32();
  record.digests.smallest = reader.u64();
  record.digests.largest = reader.u64();
  record.digests.smallestRank = reader.i32();
  record.digests.largestRank = reader.i32();
  record.length = reader.u64();
  if (!reader.good() || kind > static_cast<std::uint8_t>(RecordKind::kCollect)) {
    return Status(Code::kUnavailable, "a vote record is malformed");
  }
  return record;
}

}  // namespace pushrod::ranks
