// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <pushrod/status.h>
#include <pushrod/tensor.h>

namespace pushrod::transports {

/// Tensors that stand together in a manifest and have one owner: one update of that owner's.
struct OwnerRun {
  std::size_t first = 0;
  std::size_t end = 0;
  int owner = 0;
  bool operator==(const OwnerRun&) const = default;
};

/// A manifest's runs, in order. A manifest that lists each owner's tensors together has as many as
/// owners.
[[nodiscard]] std::vector<OwnerRun> ownerRuns(const Manifest& manifest);

/// The ranks that own a tensor, ascending. A rank's src is its place in this list.
[[nodiscard]] std::vector<int> ownersOf(const Manifest& manifest);

/// The tensors of one run.
[[nodiscard]] Manifest tensorsOf(const Manifest& manifest, const OwnerRun& run);

/// Refuses an owner that is no rank of the job, and without transport.owners any but rank 0.
Status checkOwners(const Manifest& manifest, bool owners, int ranks);

}  // namespace pushrod::transports
