// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/lag_meter.h"

#include <algorithm>
#include <string_view>

namespace pushrod::engines::vllm {

namespace {

using Attribute = LagMeter::Attribute;

constexpr int kNeeded = 3;

std::optional<Attribute> attributeOf(const std::string& text) {
  if (text == "True" || text == "False") {
    return Attribute::kFlag;
  }
  const bool number = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
  return number ? std::optional(Attribute::kRank) : std::nullopt;
}

/// Found by trying all orders: with this one each lag from 0 to 8 is told apart from the others
/// after L + 3 reads, whatever was measured just before, and also when the first reads bring old
/// errors. 'r' reads the rank, 'f' the session flag.
constexpr std::string_view kOrder = "rffrrrrrrrfffrrr";
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
  int largest = 0;
  bool known = true;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Worker& worker = workers_[i];
    worker.answers.push_back(attributeOf(entries[i]));
    if (!worker.lag) {
      worker.lag = lagOf(worker.answers);
    }
    known = known && worker.lag.has_value();
    largest = std::max(largest, worker.lag.value_or(0));
  }
  if (known) {
    lag_ = largest;
  }
}

void LagMeter::onFailure() {
  ++reads_;
  since_ = reads_;
  workers_.clear();
}

LagMeter::Fit LagMeter::fit(const Answers& answers, int lag) const {
  Fit result;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const int asked = since_ + static_cast<int>(i) - lag;
    if (asked < 0) {
      continue;  // answers a call from before the measurement
    }
    const Attribute expected = sent(asked);
    if (answers[i] != expected) {
      result.possible = false;
      return result;
    }
    ++(expected == Attribute::kRank ? result.ranks : result.flags);
  }
  return result;
}

std::optional<int> LagMeter::lagOf(const Answers& answers) const {
  std::optional<int> found;
  for (int lag = 0; lag < reads_; ++lag) {
    const Fit result = fit(answers, lag);
    if (!result.possible || result.ranks + result.flags == 0) {
      continue;
    }
    const bool enough =
        result.ranks + result.flags >= kNeeded && result.ranks > 0 && result.flags > 0;
    if (found || !enough) {
      return std::nullopt;
    }
    found = lag;
  }
  return found;
}

}  // namespace pushrod::engines::vllm
