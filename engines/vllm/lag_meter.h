// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pushrod::engines::vllm {

/// Works out by how many calls each worker's replies come late (ruling P16, the contract's 1.6).
/// Two attributes are read whose answers cannot be mistaken for each other; a worker that is L
/// calls late answers the read of L calls ago, and at first whatever was asked before: another
/// job's measurement perhaps, in this very order. So all reads are made before anything is
/// concluded, in an order no four reads of which come twice: then four answers to our own reads
/// contradict every lag but the right one, and one too large to be among the candidates leaves
/// none. A pure value: no calls, no clock.
class LagMeter {
 public:
  enum class Attribute { kRank, kFlag };

  /// Reads of one measurement.
  static constexpr int kMaxReads = 16;
  /// The largest lag that is told apart from all others.
  static constexpr int kMaxLag = 8;

  /// What to read next.
  [[nodiscard]] Attribute next() const;

  /// One text per worker, empty for an entry that was no text.
  void onAnswer(const std::vector<std::string>& entries);
  /// The read was answered by an error, perhaps an older call's: workers behind the failing one are
  /// one call later now, so that answers before it say nothing.
  void onFailure();

  /// The largest lag of any worker once known.
  [[nodiscard]] std::optional<int> lag() const { return lag_; }

  [[nodiscard]] bool exhausted() const { return !lag_ && reads() >= kMaxReads; }

  [[nodiscard]] int reads() const { return reads_; }

 private:
  using Answers = std::vector<std::optional<Attribute>>;

  /// Whether enough answers can be checked against a supposed lag, and all agree with it.
  [[nodiscard]] bool fits(const Answers& answers, int lag) const;
  [[nodiscard]] std::optional<int> lagOf(const Answers& answers) const;
  void conclude();

  int reads_ = 0;
  int since_ = 0;                 ///< first read whose answer counts
  std::vector<Answers> workers_;  ///< from read `since_` on; no value: another text
  std::optional<int> lag_;
};

}  // namespace pushrod::engines::vllm
