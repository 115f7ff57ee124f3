// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/plan.h"

#include <algorithm>
#include <charconv>

namespace pushrod::orchestrator {

namespace {

/// What stands between the steps and the segments' name.
constexpr std::string_view kSegments = " shm ";
/// The same between the target's steps and the draft's.
constexpr std::string_view kDraft = " draft";

Status notAPlan(const std::string& why) {
  return Status(Code::kInternal, "rank 0's plan is not usable: " + why);
}

/// Takes numbers, each after a space, off the front of `text`; false when they do not ascend.
template <typename Number>
bool takeAscending(std::string_view& text, std::vector<Number>& numbers) {
  while (!text.empty() && !text.starts_with(kSegments) && !text.starts_with(kDraft)) {
    Number number = 0;
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), number);
    if (text.front() != ' ' || error != std::errc() ||
        (!numbers.empty() && number <= numbers.back())) {
      return false;
    }
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return true;
}

}  // namespace

bool Plan::packs(int rank) const {
  return std::binary_search(packers.begin(), packers.end(), rank);
}

std::string Plan::encode() const {
  std::string text = "plan 1";
  for (const std::uint64_t step : steps) {
    text += " " + std::to_string(step);
  }
  if (!draftSteps.empty()) {
    text.append(kDraft);
    for (const std::uint64_t step : draftSteps) {
      text += " " + std::to_string(step);
    }
  }
  if (!segments.empty()) {
    text.append(kSegments).append(segments);
    for (const int rank : packers) {
      text += " " + std::to_string(rank);
    }
  }
  return text;
}

Result<Plan> Plan::decode(std::string_view text,
                          std::uint64_t tensors,
                          std::uint64_t draftTensors) {
  constexpr std::string_view kHead = "plan 1";
  if (!text.starts_with(kHead)) {
    return notAPlan(text.empty() ? "it is empty" : "it is of another kind");
  }
  text.remove_prefix(kHead.size());
  Plan plan;
  if (!takeAscending(text, plan.steps)) {
    return notAPlan("its steps do not ascend");
  }
  if (plan.steps.empty() || plan.steps.back() != tensors) {
    return notAPlan("its steps do not end at " + std::to_string(tensors) + " tensors");
  }
  if (text.starts_with(kDraft)) {
    text.remove_prefix(kDraft.size());
    if (!takeAscending(text, plan.draftSteps)) {
      return notAPlan("the draft's steps do not ascend");
    }
  }
  if ((plan.draftSteps.empty() ? 0 : plan.draftSteps.back()) != draftTensors) {
    return notAPlan("the draft's steps do not end at " + std::to_string(draftTensors) + " tensors");
  }
  if (!text.empty()) {
    if (!text.starts_with(kSegments)) {
      return notAPlan("what follows the steps is no segments' name");
    }
    text.remove_prefix(kSegments.size());
    plan.segments = text.substr(0, text.find(' '));
    text.remove_prefix(plan.segments.size());
    if (plan.segments.empty() || !takeAscending(text, plan.packers) || !text.empty() ||
        plan.packers.empty() || plan.packers.front() < 0) {
      return notAPlan("its segments have no name or no rank that writes them");
    }
  }
  return plan;
}

}  // namespace pushrod::orchestrator
