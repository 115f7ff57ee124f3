// SPDX-License-Identifier: Apache-2.0
// Rank 0's word about a push's end, told on the rank link: for ranks whose votes are dead.
#include <algorithm>
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
  if (state_.phase == Phase::kVerdict && lostVote_ != 0) {
    disarm(lostVote_);
    feed(toldGo() ? Event{EventKind::kVerdict, Status(), verdict}
                  : Event{EventKind::kVoteFailed, lostVoteStatus_, {}});
  }
}

/// At the end, after a vote as well: this rank may leave at once, and its leaving can reach the
/// others before the vote's own answer. Before the last clean-up where votes are dead: the others
/// wait for nothing else.
void PushDriver::tellWord() {
  if (!state_.leader || word_) {
    return;
  }
  Verdict word;
  if (finalVote_) {
    word = *finalVote_;
  } else {
    word.decision = Decision::kFail;
  }
  if (state_.failed) {
    word.first = state_.first;
  }
  word_ = word;
  parts_.observer.onLink({LinkNews::Kind::kVerdict, true, -1, word.first});
  parts_.link.publishVerdict(push_.epoch, word);
}

bool PushDriver::toldGo() const {
  return word_ && word_->decision == Decision::kGo;
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
  const TimePoint when = parts_.executor.now() + limit;
  wordWait_ = parts_.executor.postAt(std::min(when, hardDeadline_.when()), end);
}

void PushDriver::endWordWait() {
  if (wordWait_ != 0) {
    disarm(wordWait_);
    feed(Event{EventKind::kGoalReached, Status(), {}});
  }
}

}  // namespace pushrod::orchestrator
