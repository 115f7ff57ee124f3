// SPDX-License-Identifier: Apache-2.0
// The promises about what ranks say, and when.
#include <algorithm>

#include "tests/sim/invariants.h"

namespace pushrod::sim {

namespace {

/// The one poll interval that promise 2 leaves after timeouts.push: the longest there is, after
/// which a source is aborted again that had not yet begun the first time.
constexpr Duration kPoll{500};
/// What survivors have after timeouts.agreement to raise when a rank is lost.
constexpr Duration kRaise{1000};

std::string inMs(TimePoint from, TimePoint to) {
  return std::to_string(std::chrono::duration_cast<Duration>(to - from).count()) + " ms";
}

}  // namespace

/// Promise 2, from the configured limits alone. A rank that could not run returns as soon as it
/// can.
void Invariants::checkInTime(const std::vector<RankEnd>& ends, bool onlyLoss) {
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const RankEnd& end = ends[rank];
    if (end.gone) {
      continue;
    }
    const TimePoint due = std::max(end.began + limits_.push, end.blockedUntil);
    if (end.endedAt > due + kPoll) {
      complain("promise 2: rank " + std::to_string(rank) + " returned after " +
               inMs(end.began, end.endedAt) + ", due after " + inMs(end.began, due));
    }
    // One that begins later still hopes to meet the lost one, for timeouts.connect.
    const bool survives =
        !end.stopped && lost_ != TimePoint::max() && end.began <= lost_ && onlyLoss;
    // An engine that reads from a rank that was stopped answers nobody, and rank 0 has sessions to
    // close.
    const Duration closes = rank == 0 && plan_.owners > 0 ? limits_.shutdown : Duration::zero();
    if (survives && end.endedAt > lost_ + limits_.agreement + kRaise + closes + kPoll) {
      complain("promise 2: rank " + std::to_string(rank) + " returned " + inMs(lost_, end.endedAt) +
               " after another was lost");
    }
  }
}

void Invariants::checkOneVerdict(const std::vector<RankEnd>& ends) {
  const RankEnd* first = nullptr;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const RankEnd& end = ends[rank];
    if (end.gone || !end.ended || !end.known) {
      continue;
    }
    if (end.report.attempts > 2) {
      complain("promise 4: rank " + std::to_string(rank) + " made more than two attempts");
    }
    if (first == nullptr) {
      first = &end;
      continue;
    }
    if (good(first->report) != good(end.report) ||
        (good(end.report) && first->report.outcome != end.report.outcome)) {
      complain("promise 1: rank " + std::to_string(rank) + " says " +
               std::string(pushOutcomeName(end.report.outcome)) + ", another " +
               std::string(pushOutcomeName(first->report.outcome)));
    }
    const Status& mine = end.report.firstCause;
    const Status& theirs = first->report.firstCause;
    if (!first->agreementDead && !end.agreementDead &&
        (mine.message() != theirs.message() || !(mine.origin() == theirs.origin()))) {
      complain("promise 1: rank " + std::to_string(rank) + " names '" + mine.toString() +
               "', another '" + theirs.toString() + "'");
    }
    if (!good(end.report) && mine.ok()) {
      complain("promise 10: rank " + std::to_string(rank) + " failed without a cause");
    }
  }
}

/// Rank 0 does not know that the push is done when it did not hear the last vote. The others may
/// have rank 0's own word by the link.
void Invariants::checkLostVerdict(const std::vector<RankEnd>& ends,
                                  const std::vector<FaultSite>& hits) {
  const std::string last = std::string(phaseName(Phase::kVerdict)) + ", step";
  if (mayRefuse() || hits.size() != 1 || hits.front().fault.kind != FaultKind::kVerdictLost ||
      hits.front().at.rank != 0 || hits.front().what.find(last) == std::string::npos) {
    return;
  }
  const RankEnd& end = ends.front();
  // A push whose limit has passed had failed before, as rank 0 knows.
  const bool hadFailed = plan_.pushLimit > Duration::zero() && !good(end.report);
  if (end.ended && end.known && !hadFailed) {
    complain("promise 1: rank 0 says " + std::string(pushOutcomeName(end.report.outcome)) +
             ", but never heard the last verdict");
  }
}

}  // namespace pushrod::sim
