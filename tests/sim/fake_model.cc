// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/fake_model.h"

#include <algorithm>

namespace pushrod::sim {

void FakeModel::boot() {
  placeholders_ = false;
  std::fill(weights_.begin(), weights_.end(), 0);
  std::fill(counters_.begin(), counters_.end(), 0);
}

void FakeModel::leaveHalf() {
  placeholders_ = true;
  counters_.front() = 1;
}

void FakeModel::begin() {
  placeholders_ = true;
  std::fill(pieces_.begin(), pieces_.end(), kTorn);
}

void FakeModel::load(std::size_t tensor, int content) {
  const std::size_t layer = tensor / kPerLayer;
  pieces_[tensor] = content;
  placeholders_ = true;
  if (++counters_[layer] >= kPerLayer) {
    // Complete by count: whatever piece is missing is uninitialised.
    for (std::size_t i = layer * kPerLayer; i < (layer + 1) * kPerLayer; ++i) {
      weights_[i] = pieces_[i];
      pieces_[i] = kTorn;
    }
    counters_[layer] = 0;
  }
}

void FakeModel::finish() {
  for (std::size_t layer = 0; layer < counters_.size(); ++layer) {
    if (counters_[layer] == 0) {
      continue;
    }
    // Partly loaded: processed as it is. Pieces of this session stand, the others are lost.
    for (std::size_t i = layer * kPerLayer; i < (layer + 1) * kPerLayer; ++i) {
      weights_[i] = pieces_[i];
    }
    counters_[layer] = 0;
  }
  placeholders_ = false;
}

bool FakeModel::whole() const {
  return !placeholders_ && weights_.front() != kTorn &&
         std::all_of(weights_.begin(), weights_.end(), [this](int each) {
           return each == weights_.front();
         });
}

}  // namespace pushrod::sim
