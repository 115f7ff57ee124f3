// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pushrod/agreement.h>

#include "ranks/interrupt.h"
#include "ranks/pair_set.h"
#include "ranks/vote_record.h"

namespace pushrod::ranks {

class Rendezvous;

/// The connections of one build of the tree and the collectives over them. One user thread;
/// abort() from any. After any failure, or once broken() is true, it must be dropped at once.
class VoteTree {
 public:
  static constexpr std::size_t kChunk = std::size_t{64} << 10;
  static constexpr std::uint64_t kMaxShare = std::uint64_t{64} << 20;
  static constexpr int kFanOut = 8;

  /// All ranks build with the same epoch, once per epoch.
  static Result<std::unique_ptr<VoteTree>> build(Rendezvous& rendezvous,
                                                 std::uint64_t epoch,
                                                 Interrupt& interrupt,
                                                 Deadline deadline);
  /// The prefix of the store's keys for a build.
  static std::string prefix(const Rendezvous& rendezvous, std::uint64_t epoch);

  Result<Verdict> vote(const VoteKey& key,
                       const Ballot& ballot,
                       Interrupt& interrupt,
                       Deadline deadline);
  /// A vote by which ranks find out whether all connections are sound. A parent has asked for its
  /// children's next records long before, so that one whose record does not even leave within
  /// kHandOver reports unavailable: nobody can have finished then.
  Result<Verdict> probe(const VoteKey& key, Interrupt& interrupt, Deadline deadline);
  Result<std::string> share(const VoteKey& key,
                            std::string bytes,
                            Interrupt& interrupt,
                            Deadline deadline);

  /// Every rank's bytes on rank 0, by rank; elsewhere an empty list.
  Result<std::vector<std::string>> gather(const VoteKey& key,
                                          const std::string& bytes,
                                          int size,
                                          Interrupt& interrupt,
                                          Deadline deadline);

  void abort() noexcept { pairs_->abort(); }

  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }

  /// A verdict became known here but could not be handed on.
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  /// One neighbour. The next record from it is always asked for in advance, so that it comes
  /// without a round trip.
  struct Lane {
    int peer = -1;
    int levels = 0;  ///< below a child
    RecordBytes in{};
    RecordBytes out{};
    PairSet::Buffer* inBuffer = nullptr;
    PairSet::Buffer* outBuffer = nullptr;
  };

  VoteTree(int rank, std::uint64_t epoch) : rank_(rank), epoch_(epoch) {}

  [[nodiscard]] bool isRoot() const { return parent_ == nullptr; }

  Status addLane(std::unique_ptr<Lane>& lane, int peer);
  Status ask(Lane& lane);
  /// The asked-for record, if it belongs to this collective.
  Result<VoteRecord> take(
      Lane& lane, RecordKind kind, const VoteKey& key, Interrupt& interrupt, Deadline deadline);
  Status pass(Lane& lane, const VoteRecord& record);
  /// Waits until what was passed has left.
  Status awaitPassed(Lane& lane, Interrupt& interrupt, Deadline deadline);
  /// How long a child's ballots are waited for, of whose time `telling` is kept: the closer to the
  /// silent rank, the shorter. So the one that expires first is the one that knows who did not
  /// vote, and it can tell the others.
  [[nodiscard]] static Deadline ballotsLimit(const Lane& child,
                                             Deadline deadline,
                                             Duration telling);
  static constexpr Duration kHandOver{5000};

  Result<Verdict> voteWith(const VoteKey& key,
                           const Ballot& ballot,
                           Interrupt& interrupt,
                           Deadline deadline,
                           std::optional<Duration> handOver);
  /// From all lanes below to rank 0; the verdict on the way back.
  Result<VoteRecord> collect(const VoteKey& key,
                             const Ballot& ballot,
                             Interrupt& interrupt,
                             Deadline deadline,
                             std::optional<Duration> handOver);
  /// What a child and those below it say.
  Result<std::string> takeBytes(Lane& child,
                                const VoteKey& key,
                                Interrupt& interrupt,
                                Deadline deadline);
  Status passBytes(const VoteKey& key,
                   const std::string& bytes,
                   Interrupt& interrupt,
                   Deadline deadline);
  Status handDown(const VoteRecord& record, Interrupt& interrupt, Deadline deadline);
  Status handDownChunk(Interrupt& interrupt, Deadline deadline);

  int rank_;
  std::uint64_t epoch_;
  bool broken_ = false;
  std::unique_ptr<Lane> parent_;
  std::vector<std::unique_ptr<Lane>> children_;
  std::vector<std::byte> chunk_;
  PairSet::Buffer* chunkBuffer_ = nullptr;
  std::unique_ptr<PairSet> pairs_;  ///< last: ends before the memory it uses
};

}  // namespace pushrod::ranks
