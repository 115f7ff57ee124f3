// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/flight/ring.h"

#include <utility>
#include <vector>

namespace pushrod::orchestrator {

namespace {

static_assert(sizeof(FlightEvent) <= 768, "the bound told of in ring.h");

std::size_t textsOf(const FlightEvent& event) {
  return event.who.size() + event.what.size() + event.text.size() + event.status.message().size() +
         event.status.origin().engine.size() + event.verdict.first.message().size() +
         event.verdict.first.origin().engine.size() +
         (event.steps.size() + event.draftSteps.size()) * sizeof(event.steps[0]);
}

}  // namespace

void FlightRing::reset(PushState base) {
  base_ = std::move(base);
  events_.clear();
  texts_ = 0;
  dropped_ = 0;
}

void FlightRing::add(FlightEvent event) {
  texts_ += textsOf(event);
  events_.push_back(std::move(event));
  while (events_.size() > kMaxEvents || texts_ > kMaxTexts) {
    texts_ -= textsOf(events_.front());
    advance(base_, events_.front());
    events_.pop_front();
    ++dropped_;
  }
}

std::string FlightRing::encode(int rank,
                               const FlightManifests& manifests,
                               std::size_t budget) const {
  std::vector<std::string> lines;
  // The state that is written in the end may have other numbers in it.
  constexpr std::size_t kNumbers = 128;
  std::size_t size = stateLine(rank, base_, dropped_).size() + kNumbers;
  std::size_t first = events_.size();
  while (first > 0) {
    std::string line = eventLine(rank, events_[first - 1], manifests);
    if (size + line.size() > budget) {
      break;
    }
    size += line.size();
    lines.push_back(std::move(line));
    --first;
  }
  PushState state = base_;
  for (std::size_t i = 0; i < first; ++i) {
    advance(state, events_[i]);
  }
  std::string text = stateLine(rank, state, dropped_ + first);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    text += *line;
  }
  return text;
}

}  // namespace pushrod::orchestrator
