// SPDX-License-Identifier: Apache-2.0
#include "transports/owner_runs.h"

#include <algorithm>

namespace pushrod::transports {

std::vector<OwnerRun> ownerRuns(const Manifest& manifest) {
  std::vector<OwnerRun> runs;
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i) {
    const int owner = manifest.tensors[i].owner;
    if (runs.empty() || runs.back().owner != owner) {
      runs.push_back({i, i, owner});
    }
    runs.back().end = i + 1;
  }
  return runs;
}

std::vector<int> ownersOf(const Manifest& manifest) {
  std::vector<int> owners;
  for (const OwnerRun& run : ownerRuns(manifest)) {
    owners.push_back(run.owner);
  }
  std::sort(owners.begin(), owners.end());
  owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
  return owners;
}

Manifest tensorsOf(const Manifest& manifest, const OwnerRun& run) {
  const auto at = [&](std::size_t index) {
    return manifest.tensors.begin() + static_cast<std::ptrdiff_t>(index);
  };
  return Manifest{{at(run.first), at(run.end)}};
}

Status checkOwners(const Manifest& manifest, bool owners, int ranks) {
  for (const TensorSpec& tensor : manifest.tensors) {
    const std::string what =
        "tensor '" + tensor.describe() + "' has owner rank " + std::to_string(tensor.owner);
    if (tensor.owner < 0 || tensor.owner >= ranks) {
      return Status(Code::kInvalidArgument,
                    what + ", and the job has ranks 0 to " + std::to_string(ranks - 1) +
                        "; declare an owner among them",
                    Outcome::kNotSent);
    }
    if (!owners && tensor.owner != 0) {
      return Status(Code::kInvalidArgument,
                    what +
                        ", and without transport.owners rank 0 sends every tensor; set "
                        "transport.owners: true (transport tcp), or declare owner 0",
                    Outcome::kNotSent);
    }
  }
  return {};
}

}  // namespace pushrod::transports
