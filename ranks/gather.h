// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <pushrod/result.h>

#include "ranks/interrupt.h"
#include "ranks/pair_set.h"

namespace pushrod::ranks {

class Rendezvous;

/// Puts the ranks' shares of a tensor's bytes together on every rank, around a ring of its own
/// connections. For sources that read a checkpoint in shares. One user thread; abort() from any.
/// Needs the ranks to have met (Agreement::open).
class Gather {
 public:
  /// Bytes on their way at a time to one neighbour.
  static constexpr std::size_t kPiece = std::size_t{4} << 20;

  explicit Gather(Rendezvous& rendezvous) : rendezvous_(rendezvous) {}

  ~Gather();
  Gather(const Gather&) = delete;
  Gather& operator=(const Gather&) = delete;

  /// A collective: `whole` becomes the shares in rank order. `counts` are the bytes of every rank's
  /// share, the same on all ranks; `mine` is this rank's and may lie at its place in `whole`. The
  /// first call connects the ring. After a failure every call fails until recover().
  Status allGatherShares(std::span<const std::byte> mine,
                         std::span<std::byte> whole,
                         std::span<const std::size_t> counts,
                         Deadline deadline);
  /// Ends the current or the next call with `reason`. Sticky until recover(). Never blocks.
  void abort(const Status& reason) noexcept;
  /// A collective: connects anew.
  Status recover(Deadline deadline);
  /// Forgets a failure; the next call connects anew. Contacts nobody. Not during a call.
  void renew();

 private:
  /// What neighbours compare before any byte moves.
  struct Announcement {
    std::uint64_t call = 0;
    std::uint64_t digest = 0;  ///< of all counts

    bool operator==(const Announcement&) const = default;
  };

  [[nodiscard]] int size() const;
  [[nodiscard]] int rank() const;

  [[nodiscard]] int left() const { return (rank() + size() - 1) % size(); }

  [[nodiscard]] int right() const { return (rank() + 1) % size(); }

  Status connect(Deadline deadline);
  /// Moves all ranks to the largest generation that one of them is at.
  Status agreeOnGeneration(Deadline deadline);
  Status compare(std::span<const std::size_t> counts, Deadline deadline);
  Status circulate(PairSet::Buffer& buffer, std::span<const std::size_t> counts, Deadline deadline);
  Status exchange(PairSet::Buffer& buffer,
                  std::size_t sendAt,
                  std::size_t sendSize,
                  std::size_t receiveAt,
                  std::size_t receiveSize,
                  Deadline deadline);
  Status fail(const Status& status);

  Rendezvous& rendezvous_;
  Interrupt interrupt_;
  std::uint64_t generation_ = 1;
  bool failed_ = false;
  Announcement mine_;
  Announcement theirs_;
  PairSet::Buffer* mineBuffer_ = nullptr;
  PairSet::Buffer* theirsBuffer_ = nullptr;
  std::mutex mutex_;  ///< guards pairs_ against abort()
  std::unique_ptr<PairSet> pairs_;
};

}  // namespace pushrod::ranks
