// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pushrod::engines::vllm {

/// Works out by how many calls each worker's replies come late (ruling P16, the contract's 1.6).
/// Two attributes with answers that cannot be mistaken are read: one of them again and again until
/// every worker has answered it (a round), then the other. The reads that a worker spent on the
/// attribute before are its lag. Done when two rounds agree. A pure value: no calls, no clock.
class LagMeter {
 public:
  enum class Attribute { kRank, kFlag };

  /// Reads allowed in one measurement.
  static constexpr int kMaxReads = 16;

  /// What to read next.
  [[nodiscard]] Attribute next() const { return attribute_; }

  /// One text per worker, empty for an entry that was no text.
  void onAnswer(const std::vector<std::string>& entries);
  /// The read was answered by an error, perhaps an older call's: workers behind the failing one are
  /// one call later now, so that earlier rounds say nothing.
  void onFailure();

  /// The largest lag of any worker once known.
  [[nodiscard]] std::optional<int> lag() const { return lag_; }

  [[nodiscard]] bool exhausted() const { return !lag_ && reads_ >= kMaxReads; }

  [[nodiscard]] int reads() const { return reads_; }

 private:
  void startRound();
  void endRound();

  Attribute attribute_ = Attribute::kRank;
  int reads_ = 0;
  int position_ = 0;         ///< reads made in this round
  std::vector<int> first_;   ///< per worker: reads before its first right answer; -1 none yet
  std::vector<int> before_;  ///< the last round's; empty: none
  std::optional<int> lag_;
};

}  // namespace pushrod::engines::vllm
