// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/driver/goal_runner.h"

#include <algorithm>
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

void GoalRunner::start(Goal goal, Deadline deadline, std::uint32_t attempt, Phase phase) {
  cancelReason_ = Status(Code::kAborted, "given up for the next phase");
  tracks_.resize(slots_.size());
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    Track& track = tracks_[i];
    executor_.cancel(track.timer);
    track.timer = 0;
    track.ended = false;
    track.ok = false;
    track.last.reset();
    track.answered = Status();
    track.failure = Status();
    if (track.calling) {
      slots_[i].client->cancel(cancelReason_);
    }
  }
  ++generation_;
  running_ = true;
  goal_ = goal;
  deadline_ = deadline;
  origin_.attempt = static_cast<int>(attempt);
  origin_.phase = phase;
  cancelReason_ = fence_;
  first_ = Status();
  // From a posted task, so that a goal that is reached at once is not reported inline.
  executor_.post([this, generation = generation_, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired() || generation != generation_) {
      return;
    }
    for (std::size_t i = 0; i < tracks_.size(); ++i) {
      if (!tracks_[i].calling && !tracks_[i].ended && tracks_[i].timer == 0) {
        advance(i);
      }
    }
    settleIfDone();
  });
}

void GoalRunner::cancel(const Status& reason) {
  if (!running_ || !cancelReason_.ok()) {
    return;
  }
  cancelReason_ = reason;
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    Track& track = tracks_[i];
    if (track.calling) {
      slots_[i].client->cancel(reason);
    } else if (track.timer != 0) {
      executor_.cancel(track.timer);
      track.timer = 0;
      end(i, reason);
    }
  }
  settleIfDone();
}

void GoalRunner::fence(const Status& reason) {
  fence_ = reason;
  cancel(reason);
}

std::vector<std::string> GoalRunner::waiting() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; running_ && i < tracks_.size(); ++i) {
    if (!tracks_[i].ended) {
      names.push_back(slots_[i].client->name());
    }
  }
  return names;
}

int GoalRunner::reached() const {
  return static_cast<int>(
      std::count_if(tracks_.begin(), tracks_.end(), [](const Track& t) { return t.ok; }));
}

Status GoalRunner::located(std::size_t engine, const Status& status) const {
  Origin origin = origin_;
  origin.engine = slots_[engine].client->name();
  return status.at(origin);
}

void GoalRunner::advance(std::size_t engine) {
  EngineSlot& slot = slots_[engine];
  Track& track = tracks_[engine];
  if (!cancelReason_.ok()) {
    end(engine, cancelReason_);
    return;
  }
  Next next = nextCall(slot.ledger, goal_, slot.facts, track.last ? &*track.last : nullptr);
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
    case Next::Kind::kWait:
      break;
  }
  const TimePoint when = std::min(executor_.now() + next.pause, deadline_.when());
  track.timer = executor_.postAt(
      when, [this, engine, call = std::move(next.call), alive = std::weak_ptr<int>(alive_)] {
        if (alive.expired()) {
          return;
        }
        tracks_[engine].timer = 0;
        send(engine, call);
      });
}

void GoalRunner::send(std::size_t engine, const Call& call) {
  EngineSlot& slot = slots_[engine];
  if (deadline_.passed(executor_)) {
    Status limit(Code::kDeadlineExceeded,
                 "the limit of this phase passed before " + std::string(callName(call.kind)),
                 Outcome::kNotSent);
    // What was to be resolved by this call is the cause; that there was no time left is not.
    Status cause = tracks_[engine].failure;
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
  tracks_[engine].calling = true;
  Deadline limit = deadline_;
  if (call.kind == CallKind::kResume) {
    // A lost answer must leave time for the read that tells whether it was done.
    limit = Deadline::after(executor_, deadline_.remaining(executor_) / 2);
  }
  slot.client->call(call,
                    limit,
                    [this,
                     engine,
                     generation = generation_,
                     goal = goal_,
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
  if (generation == generation_) {
    if (!reply.status.ok()) {
      track.failure = reply.status;
    }
    if (!reply.status.ok() && reply.httpStatus != 0) {
      track.answered = reply.status;
    }
    track.last = std::move(reply);
  }
  if (running_ && !track.ended) {
    advance(engine);
    settleIfDone();
  }
}

void GoalRunner::end(std::size_t engine, const Status& status) {
  Track& track = tracks_[engine];
  track.ended = true;
  track.ok = status.ok();
  if (status.ok()) {
    return;
  }
  // What the engine said is the cause; that the limit then passed is a note on it.
  Status cause = status.code() == Code::kDeadlineExceeded ? track.answered : Status();
  cause.merge(status);
  const Status where = located(engine, cause);
  EngineSlot& slot = slots_[engine];
  (goal_ == Goal::kClosed ? slot.ledger.closing : slot.ledger.error).merge(where);
  const bool firstFailure = first_.ok();
  first_.merge(where);
  const bool othersBusy =
      std::any_of(tracks_.begin(), tracks_.end(), [](const Track& t) { return !t.ended; });
  if (goal_ == Goal::kUpdated && firstFailure && othersBusy && hooks_.early) {
    executor_.post([this, where, generation = generation_, alive = std::weak_ptr<int>(alive_)] {
      if (!alive.expired() && generation == generation_) {
        hooks_.early(where);
      }
    });
  }
}

void GoalRunner::settleIfDone() {
  const bool all = std::all_of(
      tracks_.begin(), tracks_.end(), [](const Track& t) { return t.ended && !t.calling; });
  if (!running_ || !all) {
    return;
  }
  running_ = false;
  executor_.post([this,
                  goal = goal_,
                  first = first_,
                  generation = generation_,
                  alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired() && generation == generation_) {
      hooks_.settled(goal, first);
    }
  });
}

}  // namespace pushrod::orchestrator
