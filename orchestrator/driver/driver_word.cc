// SPDX-License-Identifier: Apache-2.0
// Rank 0's word about a push's end, told on the rank link: for ranks whose votes are dead.
#include <utility>

#include "orchestrator/driver/push_driver.h"

namespace pushrod::orchestrator {

namespace {

/// How long a rank whose votes are dead waits for rank 0's word before it ends with its own: rank 0
/// first closes sessions, which healthy engines answer at once.
constexpr Duration kWordLimit{1000};

}  // namespace

bool PushDriver::rankZeroWillTell() const {
  return state_.phase == Phase::kVerdict && !state_.leader && !rankZeroLost_;
}

void PushDriver::onVerdict(std::uint64_t epoch, const Verdict& verdict) {
  if (epoch != push_.epoch) {
    return;
  }
  parts_.observer.onLink({LinkNews::Kind::kVerdict, false, 0, verdict.first});
  word_ = verdict;
  if (state_.agreementDead) {
    adoptWord();
    endWordWait();
    return;
  }
  if (state_.phase != Phase::kVerdict) {
    return;
  }
  if (verdict.decision == Decision::kGo) {
    finalWord_ = verdict;
  }
  if (lostVote_ != 0) {
    disarm(lostVote_);
    feed(finalWord_ ? Event{EventKind::kVerdict, Status(), *finalWord_}
                    : Event{EventKind::kVoteFailed, lostVoteStatus_, {}});
  }
}

/// The push's outcome is known after all, and all ranks carry rank 0's first cause: what this one
/// met is a note on it.
void PushDriver::adoptWord() {
  verdictUnknown_ = false;
  Status first = word_->first;
  first.merge(state_.first);
  state_.first = std::move(first);
}

void PushDriver::awaitWord() {
  const auto end = [this, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired()) {
      wordWait_ = 0;
      feed(Event{EventKind::kGoalReached, Status(), {}});
    }
  };
  if (word_) {
    adoptWord();
  }
  const bool nobodyTells = word_ || rankZeroLost_;
  const Duration limit = nobodyTells ? Duration::zero() : kWordLimit;
  wordWait_ = parts_.executor.postAt(parts_.executor.now() + limit, end);
}

void PushDriver::endWordWait() {
  if (wordWait_ != 0) {
    disarm(wordWait_);
    feed(Event{EventKind::kGoalReached, Status(), {}});
  }
}

}  // namespace pushrod::orchestrator
