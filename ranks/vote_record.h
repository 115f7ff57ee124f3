// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <pushrod/agreement.h>
#include <pushrod/result.h>

namespace pushrod::ranks {

/// One size for every record on every rank: Gloo ends the process where sizes differ.
inline constexpr std::size_t kRecordBytes = 768;
using RecordBytes = std::array<std::byte, kRecordBytes>;

enum class RecordKind : std::uint8_t {
  kBallots,  ///< towards rank 0: what a rank and those below it say
  kVerdict,  ///< from rank 0
  kShare,    ///< from rank 0: `length` bytes follow in chunks
  kCollect,  ///< towards rank 0: the same, of a rank and those below it
};

/// The smallest and the largest digest of some ranks, each with the lowest rank that has it.
struct DigestRange {
  std::uint64_t smallest = 0;
  std::uint64_t largest = 0;
  int smallestRank = 0;
  int largestRank = 0;

  bool operator==(const DigestRange&) const = default;
};

/// What travels over the tree.
struct VoteRecord {
  RecordKind kind = RecordKind::kBallots;
  VoteKey key;
  Verdict verdict;       ///< kBallots: without decision and digests
  int failingRank = -1;  ///< who cast verdict.first; -1 when it is ok
  DigestRange digests;
  std::uint64_t length = 0;
};

/// One rank's ballot as a record. An origin that the status lacks is taken from rank and key.
[[nodiscard]] VoteRecord ballotRecord(const VoteKey& key, const Ballot& ballot, int rank);
/// Adds the ballots of `other`: the status of the lowest failing rank wins.
void combine(VoteRecord& into, const VoteRecord& other);
/// Rank 0's result: the verdict of all ballots. Calls `ballot.decide`.
[[nodiscard]] Verdict conclude(const VoteRecord& all, const Ballot& ballot);

void encode(const VoteRecord& record, RecordBytes& bytes);
Result<VoteRecord> decode(const RecordBytes& bytes);

}  // namespace pushrod::ranks
