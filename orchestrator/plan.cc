// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/plan.h"

#include <charconv>

namespace pushrod::orchestrator {

namespace {

Status notAPlan(const std::string& why) {
  return Status(Code::kInternal, "rank 0's plan is not usable: " + why);
}

}  // namespace

std::string Plan::encode() const {
  std::string text = "plan 1";
  for (const std::uint64_t step : steps) {
    text += " " + std::to_string(step);
  }
  return text;
}

Result<Plan> Plan::decode(std::string_view text, std::uint64_t tensors) {
  constexpr std::string_view kHead = "plan 1";
  if (!text.starts_with(kHead)) {
    return notAPlan(text.empty() ? "it is empty" : "it is of another kind");
  }
  text.remove_prefix(kHead.size());
  Plan plan;
  while (!text.empty()) {
    std::uint64_t step = 0;
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), step);
    if (text.front() != ' ' || error != std::errc() ||
        (!plan.steps.empty() && step <= plan.steps.back())) {
      return notAPlan("its steps do not ascend");
    }
    plan.steps.push_back(step);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  if (plan.steps.empty() || plan.steps.back() != tensors) {
    return notAPlan("its steps do not end at " + std::to_string(tensors) + " tensors");
  }
  return plan;
}

}  // namespace pushrod::orchestrator
