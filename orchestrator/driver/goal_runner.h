// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <pushrod/engine_client.h>
#include <pushrod/executor.h>

#include "orchestrator/fsm/decide.h"
#include "orchestrator/ledger/ledger.h"
#include "orchestrator/ledger/next_call.h"

namespace pushrod::orchestrator {

/// One engine of the push: what speaks to it, what is known of it, what is wanted of it.
struct EngineSlot {
  EngineClient* client = nullptr;
  Ledger ledger;
  PushFacts facts;
};

/// Brings all engines to one goal at a time, each at its own pace: nextCall, call, apply, again. A
/// straggler never holds up another engine's request. A dropped engine has a goal of its own, to be
/// closed, beside the others'. Control thread only.
class GoalRunner {
 public:
  struct Hooks {
    /// Every engine has settled. ok: all reached the goal; else the first failure, the others
    /// noted.
    std::function<void(Goal, const Status&)> settled;
    /// An engine failed `updated` while others are still at it.
    std::function<void(const Status&)> early;
    /// Before every call.
    std::function<void(std::size_t engine, Goal, const Call&, Deadline)> sent;
    /// After every reply, the ledger already brought up to date.
    std::function<void(std::size_t engine, Goal, const Call&, const Reply&)> observed;
  };

  GoalRunner(Executor& executor, Origin origin, Hooks hooks);
  ~GoalRunner();
  GoalRunner(const GoalRunner&) = delete;
  GoalRunner& operator=(const GoalRunner&) = delete;

  /// The engines, in configuration order; the vector must not change while a goal runs.
  std::vector<EngineSlot>& slots() { return slots_; }

  [[nodiscard]] const std::vector<EngineSlot>& slots() const { return slots_; }

  /// Starts a goal under `deadline`. One still running is cancelled with `reason` and never
  /// reported; its engines begin the new goal once their outstanding calls have ended.
  void start(Goal goal, Deadline deadline, std::uint32_t attempt, Phase phase);
  /// Cancels the running goal: it settles as failed with `reason` once the outstanding calls ended.
  void cancel(const Status& reason);

  /// Engines that hold (Next::Kind::kHold) look again: the facts have changed.
  void release();
  /// Engines that hold settle as failed with `reason`; calls that are out go on to their end.
  void endHolding(const Status& reason);

  /// From now on no engine is called: every goal settles as failed with `reason`.
  void fence(const Status& reason);

  /// Goes on without an engine: it is closed under `deadline`, beside whatever the others do, and
  /// counts for no goal. Only the last ones, resumed and closed, wait for it.
  void drop(std::size_t engine, Deadline deadline);

  /// After a goal was reached: this engine has failed it all the same.
  /// Returns the failure with its place.
  Status blame(std::size_t engine, const Status& status);

  /// Engines resumed at a time; 0: all at once.
  void setWave(std::size_t wave) { wave_ = wave; }

  [[nodiscard]] bool busy() const { return running_; }

  /// What the last goal's end says about each engine.
  [[nodiscard]] std::vector<EngineStand> stands() const;

  /// Whether the running or last goal was cancelled.
  [[nodiscard]] bool cancelled() const { return !cancelReason_.ok(); }

  /// The engines that have not reached the running goal yet, nor failed.
  [[nodiscard]] std::vector<std::string> waiting() const;
  /// How many engines have reached the running goal.
  [[nodiscard]] int reached() const;
  /// The engines, at the push's end: outstanding calls are cancelled, and nobody hears of them.
  [[nodiscard]] std::vector<EngineSlot> leave();

 private:
  /// Waits, in the sense of events, for nothing any more: drops outstanding completions.
  void abandon();

  struct Track {
    Goal goal = Goal::kIdentified;
    std::uint64_t generation = 0;
    Deadline deadline = Deadline::never();
    bool begun = false;
    bool calling = false;
    bool holding = false;
    bool ended = false;
    bool ok = false;
    std::optional<Reply> last;
    Status answered;  ///< the latest failure that the engine itself spoke of
    Status waits;     ///< why the last wait was made
    Status failure;   ///< of the last call under this goal that failed
    Fault fault = Fault::kNone;
    Executor::TimerId timer = 0;
  };

  [[nodiscard]] bool dropped(std::size_t engine) const { return slots_[engine].ledger.dropped; }

  void begin(std::size_t engine, Goal goal, Deadline deadline);
  void beginWaves();

  void advance(std::size_t engine);
  [[nodiscard]] Deadline limitOf(const Call& call, Deadline deadline) const;
  void send(std::size_t engine, const Call& call);
  void onReply(
      std::size_t engine, std::uint64_t generation, Goal goal, const Call& call, Reply reply);
  /// `interrupted`: we ended it, and its engine is not to blame.
  void end(std::size_t engine, const Status& status, bool interrupted = false);
  void fail(const Status& where);
  void settleIfDone();
  [[nodiscard]] Status located(std::size_t engine, const Status& status) const;

  Executor& executor_;
  Origin origin_;
  Hooks hooks_;
  std::vector<EngineSlot> slots_;
  std::vector<Track> tracks_;
  bool running_ = false;
  Goal goal_ = Goal::kIdentified;
  Deadline deadline_ = Deadline::never();
  std::uint64_t generation_ = 0;
  std::uint64_t started_ = 0;  ///< of the running goal, among the generations
  std::size_t wave_ = 0;
  Duration share_ = Duration::zero();  ///< of the limit, for one engine of a wave
  Status cancelReason_;
  Status fence_;
  Status first_;
  /// Completions hold a weak reference, so that none reaches a runner that is gone.
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace pushrod::orchestrator
