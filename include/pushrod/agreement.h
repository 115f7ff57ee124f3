// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <pushrod/deadline.h>
#include <pushrod/result.h>

namespace pushrod {

/// Names one collective. A record with another key is never taken for it.
struct VoteKey {
  std::uint64_t epoch = 0;    ///< number of the push in this job, from 1
  std::uint32_t attempt = 1;  ///< 1, or 2 for the resend
  Phase phase = Phase::kIdle;
  std::uint32_t step = 0;  ///< counts the collectives of one phase and attempt

  /// Where steps of the draft model's session begin to count: its phases have the target's names.
  static constexpr std::uint32_t kDraftStep = std::uint32_t{1} << 28U;

  auto operator<=>(const VoteKey&) const = default;

  [[nodiscard]] bool ofDraft() const { return (step & kDraftStep) != 0; }

  /// "step 3", or "step 3 of the draft model".
  [[nodiscard]] std::string stepText() const;
  [[nodiscard]] std::string toString() const;
};

/// What rank 0 makes of a vote; all ranks receive the same.
enum class Decision : std::uint8_t { kGo, kResend, kFail };

/// One rank's part in a vote.
struct Ballot {
  Status status;  ///< this rank's failure, if any; texts are cut to fit the record
  std::uint64_t digest =
      0;                 ///< compared over all ranks (configuration, manifest); 0 on all: unused
  bool stopped = false;  ///< this rank's source yields nothing more in this pass
  /// Rank 0 only, ignored elsewhere: turns the first failing status (ok when none) into the
  /// decision. Called on the voting thread, while the vote is under way; must not block.
  std::function<Decision(const Status& first)> decide;
};

/// Failing ranks that a verdict names.
inline constexpr std::size_t kMostFailing = 8;

/// The common result of a vote, equal on every rank that receives it.
struct Verdict {
  Status first;  ///< status of the lowest failing rank; ok when all are
  Decision decision = Decision::kGo;
  bool digestsEqual = true;
  int differingRank = -1;  ///< a rank whose digest is not rank 0's, the lowest known; -1 when equal
  bool stopped = false;    ///< some rank's ballot had it
  std::vector<int> failing;  ///< ranks whose ballot fails, ascending, the lowest kMostFailing
  int failingCount = 0;      ///< how many there are
};

/// Agreement of all trainer ranks: small votes, one-to-all and all-to-one texts over a tree, with
/// interruption. vote, share, collect and open block the calling thread (one at a time); interrupt
/// is for any other thread. Every call ends by its deadline (plus one poll interval), whatever
/// other ranks do.
class Agreement {
 public:
  Agreement() = default;
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;
  virtual ~Agreement() = default;

  /// Meets the other ranks for push `epoch`. Cheap when the connections of the last push are sound;
  /// after a failed vote they are discarded and built anew under this epoch.
  virtual Status open(std::uint64_t epoch, Deadline deadline) = 0;
  /// All ranks call it with the same key. A failure (unavailable, deadlineExceeded, or the reason
  /// given to interrupt) means that the verdict is not known here, and that no further call of this
  /// epoch can succeed.
  virtual Result<Verdict> vote(const VoteKey& key, const Ballot& ballot, Deadline deadline) = 0;
  /// Rank 0's bytes on every rank. `bytes` is ignored on the others. At most 64 MiB.
  virtual Result<std::string> share(const VoteKey& key, std::string bytes, Deadline deadline) = 0;
  /// Every rank's bytes on rank 0, by rank; an empty list on the others. At most 64 MiB together.
  virtual Result<std::vector<std::string>> collect(const VoteKey& key,
                                                   std::string bytes,
                                                   Deadline deadline) = 0;
  /// Ends the current or the next call of push `epoch` with `reason`, its open() included even if
  /// that has not begun. Sticky until the open() of another push. Any thread, never blocks.
  virtual void interrupt(std::uint64_t epoch, const Status& reason) noexcept = 0;
};

}  // namespace pushrod
