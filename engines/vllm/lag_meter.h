// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pushrod::engines::vllm {

/// Works out by how many calls each worker's replies come late (ruling P16, the contract's 1.6).
/// Two attributes are read whose answers cannot be mistaken for each other; a worker that is L
/// calls late answers the read of L calls ago. Each lag that contradicts an answer is struck out,
/// and the next attribute is chosen so that it strikes out the most likely wrong one: reads that
/// simply alternate would make an even lag look like none. A lag counts as measured when three
/// answers agree with it, both attributes among them, and no other lag that was put to the test is
/// left. A pure value: no calls, no clock.
class LagMeter {
 public:
  enum class Attribute { kRank, kFlag };

  /// Reads allowed in one measurement.
  static constexpr int kMaxReads = 16;

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

  struct Worker {
    Answers answers;         ///< from read `since_` on; no value: another text
    std::optional<int> lag;  ///< once known
  };

  /// How a supposed lag stands to one worker's answers.
  struct Fit {
    bool possible = true;
    int ranks = 0;  ///< answers that agree with it, by attribute
    int flags = 0;
  };

  [[nodiscard]] Fit fit(const Answers& answers, int lag) const;
  [[nodiscard]] std::optional<int> lagOf(const Answers& answers) const;

  int reads_ = 0;
  int since_ = 0;  ///< first read whose answer counts
  std::vector<Worker> workers_;
  std::optional<int> lag_;
};

}  // namespace pushrod::engines::vllm
