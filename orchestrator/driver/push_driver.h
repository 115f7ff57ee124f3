// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <pushrod/config.h>
#include <pushrod/data_plane.h>
#include <pushrod/executor.h>
#include <pushrod/rank.h>
#include <pushrod/rank_link.h>
#include <pushrod/report.h>

#include "orchestrator/driver/caller.h"
#include "orchestrator/driver/goal_runner.h"
#include "orchestrator/driver/push_observer.h"
#include "orchestrator/fsm/decide.h"
#include "orchestrator/fsm/push_table.h"
#include "orchestrator/plan.h"
#include "transports/chunk_updates.h"
#include "transports/owned_streams.h"

namespace pushrod::orchestrator {

/// What a driver works with; all of it outlives the driver. `plane` may be null on ranks that never
/// send, `engines` is empty there.
struct DriverParts {
  Executor& executor;
  Caller& caller;
  RankLink& link;
  PushObserver& observer;
  const Config& config;
  Rank rank;
  DataPlane* plane = nullptr;
  transports::ChunkUpdates* chunks = nullptr;  ///< null: no engine takes its chunks one by one
  transports::OwnedStreams* owned = nullptr;   ///< null: rank 0 alone sends a stream
};

/// One push's own data.
struct DriverPush {
  std::uint64_t epoch = 1;
  std::string version;
  std::string marker;     ///< P7's label of this push, unique to it
  std::string agreement;  ///< the texts that ranks must agree on, version included
  std::vector<EngineSlot> engines;
  /// Why this rank cannot push: its vote in `check`, so that all refuse.
  Status refusal;
  /// Names that an earlier push of this job had (P18); null: none was made.
  std::shared_ptr<const std::set<std::string>> earlierNames;
  std::shared_ptr<const std::set<std::string>> earlierDraftNames;  ///< the same of the draft
  bool draft = false;  ///< the push carries the draft model as well (P31)
  std::function<std::string(std::string_view mine, std::string_view rank0)> compareAgreement;
  /// PushRequest::onPhase; null: none.
  std::function<Status(Phase, int attempt)> onPhase;
};

/// Performs the push table's actions and turns completions into events: the same in production and
/// in simulation. One object per push; control thread only.
class PushDriver final : public RankLinkListener {
 public:
  /// The report, the engines as they are known now, and whether the common verdict is known here.
  struct Ending {
    PushReport report;
    std::vector<EngineSlot> engines;
    std::shared_ptr<const Manifest> manifest;       ///< null: the push did not get so far
    std::shared_ptr<const Manifest> draftManifest;  ///< null: none was carried
    bool verdictKnown = true;
  };

  using Done = std::function<void(Ending)>;

  PushDriver(DriverParts parts, DriverPush push, Done done);
  ~PushDriver() override;

  /// Begins; `done` fires once, as the last thing, from a posted task.
  void start();
  /// Ends the push as a failed one. Later calls are ignored.
  void cancel(const Status& reason);

  void onStop(int rank, const VoteKey& key, const Status& reason) override;
  void onHalt(int rank, const VoteKey& key, const Status& reason) override;
  void onLost(int rank, const Status& reason) override;
  void onVerdict(std::uint64_t epoch, const Verdict& verdict) override;
  void onOversleep(Duration silence) override;

  [[nodiscard]] const PushState& state() const { return state_; }

  [[nodiscard]] const std::vector<EngineSlot>& engines() { return runner_.slots(); }

  [[nodiscard]] int enginesReady() const { return runner_.reached(); }

  [[nodiscard]] const Manifest* manifest() const { return manifest_.get(); }

  /// Payload written to an engine in this pass so far, all its workers together.
  [[nodiscard]] std::uint64_t bytesSent(std::size_t engine) const;

 private:
  void feed(const Event& event);
  [[nodiscard]] CallerRequest requestOf(ActionKind kind) const;
  void perform(const Action& action);
  void enterPhase(Phase from);

  // The trainer's own observer of phases (driver_hook.cc).
  void performAll(const Actions& actions);
  void hold(const Actions& actions);
  void onHook(const Status& status);
  void performFailed(const Action& action, const Status& failure);
  void tell(Event event);

  // Caller operations (driver_caller.cc).
  void call(CallerRequest request);
  void onCaller(ActionKind kind, Stage stage, CallerResult result);
  void onVote(CallerResult result);
  void onShared(const CallerResult& result);
  void onPrepared(const CallerResult& result);
  void onItem(const CallerResult& result, Stage stage);
  void startVote();
  void startShare();
  // The plan (driver_prepare.cc). makePlan: of one pass; the bodies stand in the slots' facts then.
  void startPrepare(const Status& refusal);
  [[nodiscard]] Result<Plan> makePlan(const Manifest& manifest);
  Result<Plan> planBoth();
  void callSource(CallerRequest request);
  void abortSource();
  Status takeManifest(const CallerResult& result);
  // The draft model (driver_draft.cc).
  [[nodiscard]] const std::shared_ptr<const Manifest>& passManifest() const;
  [[nodiscard]] std::uint64_t declaredTensors() const;
  [[nodiscard]] std::uint64_t declaredBytes() const;
  [[nodiscard]] std::string differenceFrom(const std::string& theirs) const;
  [[nodiscard]] std::vector<int> owners() const;
  void beginSession();
  void beginPass();
  void countBytes();
  void abortChannel(const Status& reason);
  void stopPeers(const Status& reason);
  void holdLostVote(const Status& status);
  /// Whether the outcome of the last vote may still come over the link.
  [[nodiscard]] bool rankZeroWillTell() const;
  /// Rank 0, once: its word goes to the others.
  void tellWord();
  /// Rank 0 has told that the push is good to its end.
  [[nodiscard]] bool toldGo() const;
  void adoptWord();
  void awaitWord();
  void endWordWait();

  // The data channel, on rank 0 (driver_channel.cc).
  [[nodiscard]] bool channelSound();
  Status announceChannel();
  // Chunks that are updates of their own.
  [[nodiscard]] bool takesChunks(const EngineSlot& slot) const;
  Status planChunks(Plan& plan, const Manifest& manifest);
  void expectChunks();
  void releaseChunks();
  void countChunk(const EngineSlot& slot, const Call& call, const Reply& reply);
  void openChannel();
  void takeChannelSlots();
  [[nodiscard]] ChannelSpec channelSpec();
  void takeInitBodies(std::vector<std::string> bodies);
  void endOpening(const Status& status);

  // Tensors that other ranks send (driver_owners.cc).
  Status planRuns(Plan& plan, const Manifest& manifest);
  [[nodiscard]] bool ownsSome() const;
  void releaseRun();
  Result<std::string> inviteSources();
  Status takeAnswers(const CallerResult& result);
  void openWithSources();
  void onExchanged(const CallerResult& result);
  void haltOthers(const Event& event, bool soundBefore);
  void deliverHalt();

  // Copies on several ranks (driver_copies.cc).
  [[nodiscard]] std::string copiesText() const;
  [[nodiscard]] std::uint64_t copiesDigest() const;
  [[nodiscard]] std::string compareCopies(const std::string& rank0);
  void nameDifferingRanks(Verdict& verdict);

  // The engines' content (driver_content.cc).
  [[nodiscard]] bool checksumsDue() const;
  void expectContent();
  [[nodiscard]] bool mustHash() const;
  void takeDigests(const std::shared_ptr<const common::ContentDigests>& digests);
  Status compareReplicas();
  void markEqual(const std::vector<std::size_t>& engines);
  Status blameCopy(std::size_t engine, std::size_t other);
  [[nodiscard]] std::vector<std::string> contentNotes() const;
  [[nodiscard]] std::optional<std::string> contentOf(const EngineSlot& slot) const;

  // Goals.
  void startGoal();
  void onGoal(const Status& status);
  void preferEngineCause();

  // Engines left out (driver_loss.cc).
  [[nodiscard]] DecideInput decideInput() const;
  bool goOnWithout(Status& status);
  void dropEngines(const std::vector<std::size_t>& engines);
  void readmit();

  // Limits (driver_limits.cc).
  [[nodiscard]] Duration phaseLimit() const;
  [[nodiscard]] Deadline capped(Duration limit) const;
  [[nodiscard]] Deadline voteDeadline() const;
  void armDrain();
  void noteDtypes();
  [[nodiscard]] std::string bytesText() const;
  [[nodiscard]] Status drainCause() const;
  void disarm(Executor::TimerId& timer);

  // Report (driver_report.cc).
  void finish();
  [[nodiscard]] PushReport buildReport() const;
  [[nodiscard]] EngineReport engineReport(const EngineSlot& slot, std::size_t index) const;
  void addEngines(PushReport& report) const;

  [[nodiscard]] VoteKey key() const;
  [[nodiscard]] std::uint64_t digest() const;
  [[nodiscard]] Status mine(const Status& status) const;

  DriverParts parts_;
  DriverPush push_;
  Done done_;
  PushState state_;
  GoalRunner runner_;
  std::shared_ptr<const Manifest> manifest_;
  std::uint64_t manifestDigest_ = 0;
  std::string manifestText_;  ///< of both
  std::shared_ptr<const Manifest> draftManifest_;

  /// What is sent to each engine in the target's session and in the draft's.
  struct Bodies {
    std::shared_ptr<const std::string> update;
    std::shared_ptr<const std::vector<std::shared_ptr<const std::string>>> runs;
  };

  std::vector<Bodies> targetBodies_;
  std::vector<Bodies> draftBodies_;
  Verdict lastVerdict_;

  TimePoint started_{};
  std::chrono::system_clock::time_point startedAt_{};
  TimePoint phaseEntered_{};
  TimePoint voteStarted_{};
  TimePoint pauseFirst_{};
  TimePoint resumeLast_{};
  std::map<std::string, double> phaseSeconds_;
  std::uint64_t passBytes_ = 0;
  std::uint64_t casts_ = 0;
  std::vector<std::uint64_t> engineBytes_;  ///< of the last attempt
  std::vector<std::uint64_t> bytesBefore_;  ///< of them, those of the target when the draft's begin
  std::uint64_t castsBefore_ = 0;           ///< the same of casts
  bool counting_ = false;                   ///< the plane counts a pass of this push
  std::vector<std::size_t> channelSlots_;   ///< which engine each place of the channel is
  std::vector<std::string> dropNotes_;
  std::vector<std::uint64_t> copies_;  ///< digests of the step's tensors so far
  bool copiesCompared_ = false;        ///< with rank 0's, since the last vote
  DecideInput voteInput_;              ///< what the vote under way is decided from

  Deadline workDeadline_ = Deadline::never();
  Deadline hardDeadline_ = Deadline::never();
  Executor::TimerId expiry_ = 0;
  Executor::TimerId drain_ = 0;
  Executor::TimerId gather_ = 0;
  Executor::TimerId abort_ = 0;
  Executor::TimerId lostVote_ = 0;
  Status lostVoteStatus_;
  bool rankZeroLost_ = false;
  std::optional<Verdict> finalVote_;  ///< what the last vote came to, here
  std::optional<Verdict> word_;       ///< what rank 0 tells, or has told, of this push's end
  Executor::TimerId wordWait_ = 0;
  Status overslept_;  ///< not ok: this rank was stopped for longer than the others wait
  Status prepareError_;
  Status gatherExpired_;
  Status planeFailure_;
  bool hookDue_ = false;   ///< the phase's observer was not asked yet
  bool hookBusy_ = false;  ///< it runs; what the table ordered meanwhile is in held_
  Actions held_;
  Phase failedIn_ = Phase::kIdle;
  bool announced_ = false;  ///< a channel is announced and not yet opened
  Status halt_;             ///< a halt that came before this rank's pass
  bool haltHeard_ = false;  ///< the failure at hand is another rank's halt
  Status inviteError_;
  bool verdictUnknown_ = false;
  bool cancelled_ = false;
  Status cancelReason_;
  bool peerLost_ = false;
  bool finished_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace pushrod::orchestrator
