// SPDX-License-Identifier: Apache-2.0
// Copies of one tensor on several ranks (push.check_replicas, P25): each step's vote compares one
// digest over all of its tensors; only after a difference rank 0 tells its own, tensor by tensor.
#include <algorithm>
#include <utility>

#include "common/hash.h"
#include "orchestrator/driver/push_driver.h"

namespace pushrod::orchestrator {

namespace {

constexpr std::size_t kDigestBytes = 8;

}  // namespace

std::string PushDriver::copiesText() const {
  std::string text;
  text.reserve(copies_.size() * kDigestBytes);
  for (const std::uint64_t digest : copies_) {
    for (std::size_t i = 0; i < kDigestBytes; ++i) {
      text += static_cast<char>((digest >> (8 * i)) & 0xFFU);
    }
  }
  return text;
}

std::uint64_t PushDriver::copiesDigest() const {
  const bool checks = parts_.config.push.checkReplicas == CheckReplicas::kDigest;
  return checks ? common::fnv1a(copiesText()) : 0;
}

/// Empty: this rank's copies of the step's tensors are rank 0's.
std::string PushDriver::compareCopies(const std::string& rank0) {
  copiesCompared_ = true;
  const std::string mine = copiesText();
  if (mine == rank0) {
    return {};
  }
  const auto differ = std::mismatch(mine.begin(), mine.end(), rank0.begin(), rank0.end());
  const auto place = static_cast<std::size_t>(differ.first - mine.begin()) / kDigestBytes;
  const std::size_t index = state_.tensors - copies_.size() + place;
  if (place >= copies_.size()) {
    return "its copies of a step's tensors are fewer than rank 0's";
  }
  return std::string("its copy of ") + (state_.draft ? "the draft model's " : "") + "tensor " +
         std::to_string(index) + " '" + passManifest()->tensors[index].describe() +
         "' holds other values than rank 0's, though all ranks gather the same; bring the ranks' "
         "parameters back in step";
}

/// Which ranks differ is known from the vote that follows the comparison, and alike to all.
void PushDriver::nameDifferingRanks(Verdict& verdict) {
  if (!std::exchange(copiesCompared_, false) || verdict.failing.empty() ||
      verdict.first.code() != Code::kDataMismatch) {
    return;
  }
  std::string ranks;
  for (const int rank : verdict.failing) {
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  const bool more = verdict.failingCount > static_cast<int>(verdict.failing.size());
  const Status& first = verdict.first;
  verdict.first = Status(first.code(),
                         first.message() + " (" + std::to_string(verdict.failingCount) + " of " +
                             std::to_string(parts_.rank.size) +
                             " ranks are not as rank 0: " + ranks + (more ? ", ..." : "") + ")",
                         first.outcome())
                      .at(first.origin());
}

}  // namespace pushrod::orchestrator
