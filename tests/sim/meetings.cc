// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/meetings.h"

#include <algorithm>
#include <utility>

namespace pushrod::sim {

namespace {

constexpr Duration kLatency{1};

Verdict count(const std::vector<Ballot>& ballots) {
  Verdict verdict;
  bool symptom = false;
  for (std::size_t rank = 0; rank < ballots.size(); ++rank) {
    const bool cause = !ballots[rank].symptom;
    if (!ballots[rank].status.ok() && (verdict.first.ok() || (symptom && cause))) {
      verdict.first = ballots[rank].status;
      symptom = !cause;
    }
    if (!ballots[rank].status.ok()) {
      verdict.failing.push_back(static_cast<int>(rank));
      ++verdict.failingCount;
    }
    verdict.stopped = verdict.stopped || ballots[rank].stopped;
    if (verdict.digestsEqual && ballots[rank].digest != ballots.front().digest) {
      verdict.digestsEqual = false;
      verdict.differingRank = static_cast<int>(rank);
    }
  }
  verdict.decision = ballots.front().decide ? ballots.front().decide(verdict.first)
                     : verdict.first.ok()   ? Decision::kGo
                                            : Decision::kFail;
  return verdict;
}

}  // namespace

void Agreements::end(std::size_t rank, Result result) {
  Waiting waiting = std::exchange(parts_[rank], Waiting{});
  executor_.cancel(waiting.timer);
  if (waiting.part.done == nullptr) {
    return;
  }
  executor_.postAt(
      executor_.now() + pace_.of(kLatency),
      [done = std::move(waiting.part.done), result = std::move(result)] { done(result); });
}

void Agreements::leave(std::size_t rank, const Status& reason) {
  left_[rank] = true;
  if (parts_[rank].here) {
    end(rank, Result{reason, {}, {}, {}});
  }
  for (std::size_t other = 0; other < parts_.size(); ++other) {
    // Whoever waits for this rank hears the connection close; so does whoever comes later.
    if (parts_[other].here && !parts_[other].part.open) {
      left_[other] = true;
      end(other, Result{Status(Code::kUnavailable, "a rank's connection closed"), {}, {}, {}});
    }
  }
}

void Agreements::enter(int rank, Part part, Deadline deadline, Trouble trouble) {
  const auto me = static_cast<std::size_t>(rank);
  Waiting& waiting = parts_[me];
  if (waiting.here) {
    complain_("promise 6: rank " + std::to_string(rank) + " is in two collectives at once");
    return;
  }
  waiting.here = true;
  waiting.trouble = trouble;
  waiting.part = std::move(part);
  if (const auto at = sticky_.find(me); at != sticky_.end()) {
    leave(me, at->second);
    return;
  }
  if (waiting.part.open) {
    left_[me] = false;
  } else if (std::find(left_.begin(), left_.end(), true) != left_.end()) {
    leave(me, Status(Code::kUnavailable, "the ranks are not connected"));
    return;
  }
  if (trouble == Trouble::kStale && unkeyed_) {
    executor_.post(
        [done = std::exchange(waiting.part.done, nullptr), last = last_] { done(last); });
  }
  waiting.timer = executor_.postAt(deadline.when(), [this, me] {
    parts_[me].timer = 0;
    leave(me, Status(Code::kDeadlineExceeded, "the others did not come in time"));
  });
  meetIfAll();
}

void Agreements::meetIfAll() {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].here || gone_[i]) {
      return;
    }
  }
  std::vector<Ballot> ballots;
  const Part first = parts_.front().part;
  for (const Waiting& waiting : parts_) {
    if (waiting.part.open != first.open || waiting.part.key != first.key) {
      complain_("promise 6: ranks wait in different collectives: " + first.key.toString() +
                " and " + waiting.part.key.toString());
      return;
    }
    ballots.push_back(waiting.part.ballot);
  }
  Result result;
  for (const Waiting& waiting : parts_) {
    result.said.push_back(waiting.part.bytes);
  }
  result.verdict = count(ballots);
  result.bytes = first.bytes;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].trouble == Trouble::kNone) {
      end(i, result);
    } else {
      left_[i] = true;
      end(i, Result{Status(Code::kUnavailable, "the connection broke"), {}, {}, {}});
    }
  }
  last_ = result;
}

void Agreements::interrupt(int rank, const Status& reason) {
  const auto me = static_cast<std::size_t>(rank);
  sticky_.emplace(me, reason);
  if (parts_[me].here) {
    leave(me, reason);
  }
}

void Agreements::die(int rank) {
  const auto me = static_cast<std::size_t>(rank);
  gone_[me] = true;
  executor_.cancel(parts_[me].timer);
  parts_[me] = Waiting{};
  leave(me, Status(Code::kUnavailable, "dead"));
}

std::string Agreements::waitsFor(int rank) const {
  const Waiting& waiting = parts_[static_cast<std::size_t>(rank)];
  return waiting.here ? "vote " + waiting.part.key.toString() : "";
}

void Gathers::end(std::size_t rank, const Status& status) {
  Waiting waiting = std::exchange(waiting_[rank], Waiting{});
  executor_.cancel(waiting.timer);
  executor_.postAt(executor_.now() + pace_.of(kLatency),
                   [done = std::move(waiting.done), status] { done(status); });
}

void Gathers::enter(int rank, const std::string& name, Way way, bool deaf, Done done) {
  const auto me = static_cast<std::size_t>(rank);
  const bool recovers = name.find("SourceRecover") != std::string::npos;
  waiting_[me] = Waiting{name, way, deaf, std::move(done), 0};
  if (way == Way::kThrows) {
    broken_[me] = true;
    end(me, Status(Code::kInternal, "the weight source threw"));
    return;
  }
  if (broken_[me] && !recovers) {
    complain_("rank " + std::to_string(rank) + " gathers in groups that were never recovered");
  }
  waiting_[me].timer = executor_.postAt(executor_.now() + watchdog_, [this, me] {
    broken_[me] = true;
    waiting_[me].timer = 0;
    end(me, Status(Code::kInternal, "the trainer's watchdog ended the gather"));
  });
  for (const Waiting& each : waiting_) {
    if (each.name != name || each.way == Way::kHangs) {
      return;
    }
  }
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    broken_[i] = false;
    end(i, Status());
  }
}

bool Gathers::abort(int rank) {
  const auto me = static_cast<std::size_t>(rank);
  if (waiting_[me].name.empty() || waiting_[me].deaf) {
    return false;
  }
  broken_[me] = true;
  end(me, Status(Code::kAborted, "the gather was aborted"));
  return true;
}

std::string Gathers::waitsFor(int rank) const {
  const Waiting& waiting = waiting_[static_cast<std::size_t>(rank)];
  return waiting.name.empty() ? "" : "gather " + waiting.name;
}

}  // namespace pushrod::sim
