// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/lag_meter.h"

#include <algorithm>
#include <string_view>

namespace pushrod::engines::vllm {

namespace {

using Attribute = LagMeter::Attribute;

/// Own answers that a lag must agree with: as long as the order's distinct pieces.
constexpr int kNeeded = 4;

std::optional<Attribute> attributeOf(const std::string& text) {
  if (text == "True" || text == "False") {
    return Attribute::kFlag;
  }
  const bool number = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
  return number ? std::optional(Attribute::kRank) : std::nullopt;
}

/// De Bruijn's sequence B(2, 4). 'r' reads the rank, 'f' the session flag.
constexpr std::string_view kOrder = "ffffrffrrfrfrrrr";
static_assert(kOrder.size() == LagMeter::kMaxReads);

Attribute sent(int read) {
  return kOrder[static_cast<std::size_t>(read)] == 'r' ? Attribute::kRank : Attribute::kFlag;
}

}  // namespace

Attribute LagMeter::next() const {
  return reads_ < kMaxReads ? sent(reads_) : Attribute::kRank;
}

void LagMeter::onAnswer(const std::vector<std::string>& entries) {
  if (entries.empty() || (!workers_.empty() && entries.size() != workers_.size())) {
    onFailure();
    return;
  }
  ++reads_;
  workers_.resize(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    workers_[i].push_back(attributeOf(entries[i]));
  }
  if (reads_ == kMaxReads) {
    conclude();
  }
}

void LagMeter::onFailure() {
  ++reads_;
  since_ = reads_;
  workers_.clear();
}

void LagMeter::conclude() {
  int largest = 0;
  for (const Answers& answers : workers_) {
    const std::optional<int> lag = lagOf(answers);
    if (!lag) {
      return;
    }
    largest = std::max(largest, *lag);
  }
  lag_ = largest;
}

bool LagMeter::fits(const Answers& answers, int lag) const {
  int checked = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const int asked = since_ + static_cast<int>(i) - lag;
    if (asked < 0) {
      continue;  // answers a call from before the measurement
    }
    if (answers[i] != sent(asked)) {
      return false;
    }
    ++checked;
  }
  return checked >= kNeeded;
}

std::optional<int> LagMeter::lagOf(const Answers& answers) const {
  for (int lag = 0; lag <= kMaxLag; ++lag) {
    if (fits(answers, lag)) {
      return lag;  // The order leaves room for no second one.
    }
  }
  return std::nullopt;
}

}  // namespace pushrod::engines::vllm
