// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/lag_meter.h"

#include <algorithm>

namespace pushrod::engines::vllm {

namespace {

bool isRank(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool isFlag(const std::string& text) {
  return text == "True" || text == "False";
}

}  // namespace

void LagMeter::onAnswer(const std::vector<std::string>& entries) {
  if (entries.empty() || (!first_.empty() && entries.size() != first_.size())) {
    onFailure();
    return;
  }
  ++reads_;
  first_.resize(entries.size(), -1);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool right = attribute_ == Attribute::kRank ? isRank(entries[i]) : isFlag(entries[i]);
    if (first_[i] < 0 && right) {
      first_[i] = position_;
    }
  }
  ++position_;
  if (std::find(first_.begin(), first_.end(), -1) == first_.end()) {
    endRound();
  }
}

void LagMeter::onFailure() {
  ++reads_;
  before_.clear();
  startRound();
}

void LagMeter::startRound() {
  attribute_ = attribute_ == Attribute::kRank ? Attribute::kFlag : Attribute::kRank;
  position_ = 0;
  first_.clear();
}

void LagMeter::endRound() {
  if (first_ == before_) {
    lag_ = *std::max_element(first_.begin(), first_.end());
    return;
  }
  before_ = first_;
  startRound();
}

}  // namespace pushrod::engines::vllm
