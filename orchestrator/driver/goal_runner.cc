// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/driver/goal_runner.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace pushrod::orchestrator {

GoalRunner::GoalRunner(Executor& executor, Origin origin, Hooks hooks)
    : executor_(executor), origin_(std::move(origin)), hooks_(std::move(hooks)) {}

GoalRunner::~GoalRunner() {
  abandon();
}

void GoalRunner::abandon() {
  for (Track& track : tracks_) {
    executor_.cancel(track.timer);
    track.timer = 0;
  }
  alive_ = std::make_shared<int>(0);
  running_ = false;
}

std::vector<EngineSlot> GoalRunner::leave() {
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    if (tracks_[i].calling) {
      // The client stays, and takes one call at a time.
      slots_[i].client->cancel(Status(Code::kAborted, "the push has ended"));
    }
  }
  abandon();
  tracks_.clear();
  return std::move(slots_);
}

void GoalRunner::begin(std::size_t engine, Goal goal, Deadline deadline) {
  Track& track = tracks_[engine];
  executor_.cancel(track.timer);
  const bool calling = track.calling;
  track = Track();
  track.goal = goal;
  track.generation = ++generation_;
  track.deadline = deadline;
  track.calling = calling;
}

void GoalRunner::start(Goal goal, Deadline deadline, std::uint32_t attempt, Phase phase) {
  const Status replaced(Code::kAborted, "given up for the next phase");
  tracks_.resize(slots_.size());
  running_ = true;
  goal_ = goal;
  deadline_ = deadline;
  origin_.attempt = static_cast<int>(attempt);
  origin_.phase = phase;
  cancelReason_ = fence_;
  first_ = Status();
  std::size_t count = 0;
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    if (dropped(i)) {
      continue;
    }
    ++count;
    begin(i, goal, deadline);
    if (tracks_[i].calling) {
      slots_[i].client->cancel(replaced);
    }
  }
  // Each wave has its share of the limit, so that one silent engine leaves time for the others.
  const bool waves = goal == Goal::kResumed && wave_ > 0 && wave_ < count;
  const auto rounds = waves ? (count + wave_ - 1) / wave_ : 1;
  share_ = waves ? deadline.remaining(executor_) / static_cast<int>(rounds) : Duration::zero();
  started_ = ++generation_;
  // From a posted task, so that a goal that is reached at once is not reported inline.
  executor_.post([this, started = started_, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired() && started == started_) {
      beginWaves();
      settleIfDone();
    }
  });
}

/// As many engines as a wave may hold are under way at a time; all of them without waves.
void GoalRunner::beginWaves() {
  const std::size_t most =
      goal_ == Goal::kResumed && wave_ > 0 ? wave_ : std::numeric_limits<std::size_t>::max();
  std::size_t busy = 0;
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    busy += !dropped(i) && tracks_[i].begun && !tracks_[i].ended ? 1U : 0U;
  }
  for (std::size_t i = 0; i < tracks_.size() && busy < most; ++i) {
    Track& track = tracks_[i];
    if (dropped(i) || track.begun || track.ended) {
      continue;
    }
    track.begun = true;
    if (share_ > Duration::zero()) {
      track.deadline = Deadline::after(executor_, share_).earliest(deadline_);
    }
    // One whose call of the last goal is still out begins when that has ended.
    if (!track.calling) {
      advance(i);
    }
    busy += track.ended ? 0U : 1U;
  }
}

void GoalRunner::drop(std::size_t engine, Deadline deadline) {
  tracks_.resize(slots_.size());
  slots_[engine].ledger = pushrod::orchestrator::drop(std::move(slots_[engine].ledger));
  begin(engine, Goal::kClosed, deadline);
  tracks_[engine].begun = true;
  executor_.post(
      [this, engine, generation = tracks_[engine].generation, alive = std::weak_ptr<int>(alive_)] {
        if (!alive.expired() && generation == tracks_[engine].generation) {
          if (!tracks_[engine].calling) {
            advance(engine);
          }
          settleIfDone();
        }
      });
}

Status GoalRunner::blame(std::size_t engine, const Status& status) {
  Ledger& ledger = slots_[engine].ledger;
  // What it was proved by is worth nothing any more, nor is a resend without an empty session.
  ledger.proof = Proof::kDiffers;
  ledger.proved = false;
  ledger.needsEmpty = true;
  end(engine, status);
  return located(engine, status);
}

void GoalRunner::cancel(const Status& reason) {
  if (!running_ || !cancelReason_.ok()) {
    return;
  }
  cancelReason_ = reason;
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    Track& track = tracks_[i];
    if (dropped(i)) {
      continue;
    }
    if (track.calling) {
      slots_[i].client->cancel(reason);
    } else if (track.timer != 0 || !track.begun) {
      executor_.cancel(track.timer);
      track.timer = 0;
      end(i, reason);
    }
  }
  endHolding(reason);
  settleIfDone();
}

void GoalRunner::release() {
  for (std::size_t i = 0; running_ && i < tracks_.size(); ++i) {
    if (std::exchange(tracks_[i].holding, false)) {
      advance(i);
    }
  }
  settleIfDone();
}

void GoalRunner::endHolding(const Status& reason) {
  for (std::size_t i = 0; running_ && i < tracks_.size(); ++i) {
    if (std::exchange(tracks_[i].holding, false)) {
      end(i, reason, true);
    }
  }
  settleIfDone();
}

void GoalRunner::fence(const Status& reason) {
  fence_ = reason;
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    if (dropped(i) && tracks_[i].calling) {
      slots_[i].client->cancel(reason);
    }
  }
  cancel(reason);
}

std::vector<EngineStand> GoalRunner::stands() const {
  std::vector<EngineStand> list;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const bool lost = slots_[i].ledger.reach == Reach::kLost;
    const Fault fault = i < tracks_.size() ? tracks_[i].fault : Fault::kNone;
    list.push_back({lost ? Fault::kLost : fault, dropped(i)});
  }
  return list;
}

std::vector<std::string> GoalRunner::waiting() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; running_ && i < tracks_.size(); ++i) {
    if (!tracks_[i].ended && !dropped(i)) {
      names.push_back(slots_[i].client->name());
    }
  }
  return names;
}

int GoalRunner::reached() const {
  int count = 0;
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    count += tracks_[i].ok && !dropped(i) ? 1 : 0;
  }
  return count;
}

Status GoalRunner::located(std::size_t engine, const Status& status) const {
  Origin origin = origin_;
  origin.engine = slots_[engine].client->name();
  return status.at(origin);
}

void GoalRunner::advance(std::size_t engine) {
  EngineSlot& slot = slots_[engine];
  Track& track = tracks_[engine];
  const Status& stop = dropped(engine) ? fence_ : cancelReason_;
  if (!stop.ok()) {
    end(engine, stop);
    return;
  }
  Next next = nextCall(slot.ledger, track.goal, slot.facts, track.last ? &*track.last : nullptr);
  switch (next.kind) {
    case Next::Kind::kReached:
      end(engine, Status());
      return;
    case Next::Kind::kFailed:
      end(engine, next.status);
      return;
    case Next::Kind::kCall:
      send(engine, next.call);
      return;
    case Next::Kind::kHold:
      track.holding = true;
      return;
    case Next::Kind::kWait:
      break;
  }
  track.waits = next.status;
  const TimePoint when = std::min(executor_.now() + next.pause, track.deadline.when());
  track.timer = executor_.postAt(
      when, [this, engine, call = std::move(next.call), alive = std::weak_ptr<int>(alive_)] {
        if (alive.expired()) {
          return;
        }
        tracks_[engine].timer = 0;
        send(engine, call);
      });
}

/// A lost answer must leave time for the read that tells whether the call was done.
Deadline GoalRunner::limitOf(const Call& call, Deadline deadline) const {
  constexpr Duration kRead = std::chrono::seconds(10);
  const Duration left = deadline.remaining(executor_);
  Duration kept = Duration::zero();
  if (call.kind == CallKind::kResume) {
    kept = left - left / 2;
  } else if (call.kind == CallKind::kFinish && call.hasVersion) {
    kept = std::min(left / 4, kRead);
  }
  return left > kept && kept > Duration::zero() ? Deadline::after(executor_, left - kept)
                                                : deadline;
}

void GoalRunner::send(std::size_t engine, const Call& call) {
  EngineSlot& slot = slots_[engine];
  Track& track = tracks_[engine];
  if (track.deadline.passed(executor_)) {
    Status limit(Code::kDeadlineExceeded,
                 "the limit of this phase passed before " + std::string(callName(call.kind)),
                 Outcome::kNotSent);
    // What was to be resolved by this call is the cause; that there was no time left is not.
    Status cause = track.failure;
    cause.merge(track.waits);
    cause.merge(limit);
    end(engine, cause);
    settleIfDone();
    return;
  }
  if (call.kind == CallKind::kStart) {
    // P3 looks at all engines: from the first start on, none is put back.
    for (EngineSlot& other : slots_) {
      other.facts.anyStartSent = true;
    }
  }
  track.calling = true;
  const Deadline limit = limitOf(call, track.deadline);
  if (hooks_.sent) {
    hooks_.sent(engine, track.goal, call, limit);
  }
  slot.client->call(call,
                    limit,
                    [this,
                     engine,
                     generation = track.generation,
                     goal = track.goal,
                     call,
                     alive = std::weak_ptr<int>(alive_)](Reply reply) {
                      if (!alive.expired()) {
                        onReply(engine, generation, goal, call, std::move(reply));
                      }
                    });
}

void GoalRunner::onReply(
    std::size_t engine, std::uint64_t generation, Goal goal, const Call& call, Reply reply) {
  EngineSlot& slot = slots_[engine];
  Track& track = tracks_[engine];
  track.calling = false;
  slot.ledger = apply(std::move(slot.ledger), goal, call, reply, slot.facts);
  if (hooks_.observed) {
    hooks_.observed(engine, goal, call, reply);
  }
  if (generation == track.generation) {
    if (!reply.status.ok()) {
      track.failure = reply.status;
    }
    if (!reply.status.ok() && reply.httpStatus != 0) {
      track.answered = reply.status;
    }
    track.last = std::move(reply);
  }
  if ((running_ || dropped(engine)) && track.begun && !track.ended) {
    advance(engine);
  }
  settleIfDone();
}

void GoalRunner::end(std::size_t engine, const Status& status, bool interrupted) {
  Track& track = tracks_[engine];
  EngineSlot& slot = slots_[engine];
  track.begun = true;
  track.ended = true;
  track.ok = status.ok();
  if (!status.ok()) {
    // What the engine said is the cause; that the limit then passed is a note on it.
    Status cause = status.code() == Code::kDeadlineExceeded ? track.answered : Status();
    cause.merge(status);
    const Status where = located(engine, cause);
    (track.goal == Goal::kClosed ? slot.ledger.closing : slot.ledger.error).merge(where);
    if (!dropped(engine)) {
      track.fault = faultOf(slot.ledger, cause, interrupted || !cancelReason_.ok());
      fail(where);
    }
  }
  if (!dropped(engine) && wave_ > 0 && track.goal == Goal::kResumed) {
    executor_.post([this, started = started_, alive = std::weak_ptr<int>(alive_)] {
      if (!alive.expired() && started == started_ && running_) {
        beginWaves();
        settleIfDone();
      }
    });
  }
}

/// An engine's failure is the goal's.
void GoalRunner::fail(const Status& where) {
  const bool firstFailure = first_.ok();
  first_.merge(where);
  bool othersBusy = false;
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    othersBusy = othersBusy || (!tracks_[i].ended && !dropped(i));
  }
  if (goal_ == Goal::kUpdated && firstFailure && othersBusy && hooks_.early) {
    executor_.post([this, where, started = started_, alive = std::weak_ptr<int>(alive_)] {
      if (!alive.expired() && started == started_) {
        hooks_.early(where);
      }
    });
  }
}

void GoalRunner::settleIfDone() {
  if (!running_) {
    return;
  }
  // The last goals wait for the dropped ones as well, since nobody speaks to them afterwards.
  const bool last = goal_ == Goal::kResumed || goal_ == Goal::kClosed;
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    const bool done = tracks_[i].ended && !tracks_[i].calling;
    if (!done && (last || !dropped(i))) {
      return;
    }
  }
  running_ = false;
  executor_.post(
      [this, goal = goal_, first = first_, started = started_, alive = std::weak_ptr<int>(alive_)] {
        if (!alive.expired() && started == started_) {
          hooks_.settled(goal, first);
        }
      });
}

}  // namespace pushrod::orchestrator
