// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/driver/push_observer.h"
#include "orchestrator/flight/ring.h"

namespace pushrod::orchestrator {

/// What a rank is busy with, for stall reports.
struct FlightOperation {
  std::string_view name;
  TimePoint since;
  Duration limit{};
};

/// A call that is out at an engine.
struct FlightCall {
  std::string name;  ///< of the engine
  std::string_view call;
  TimePoint since;
  Duration limit{};
  bool out = false;
  int workers = 1;
  std::uint64_t moved = 0;  ///< bytes that were written to it when they were last seen to grow
  TimePoint movedAt;
};

/// Keeps what a push does on this rank, and passes everything on to the observer behind it. Copies
/// no tensor data; bounded as FlightRing is. Control thread only.
class FlightRecorder final : public PushObserver {
 public:
  FlightRecorder(const Clock& clock, int rank, PushObserver& next)
      : clock_(clock), rank_(rank), next_(next) {}

  /// A push begins in the table's state `base`. `bytesSent` tells what was written to an engine in
  /// this pass so far.
  void begin(const PushState& base,
             const std::vector<std::string>& engines,
             std::function<std::uint64_t(std::size_t engine)> bytesSent);

  /// It has ended: what it used is gone.
  void end() { bytesSent_ = nullptr; }

  /// This rank's part of a record, at most `budget` bytes.
  [[nodiscard]] std::string encode(std::size_t budget) const;

  // Where it stands.
  [[nodiscard]] const PushState& place() const { return place_; }

  [[nodiscard]] const std::optional<FlightOperation>& operation() const { return operation_; }

  [[nodiscard]] const std::optional<FlightOperation>& drain() const { return drain_; }

  /// The draft model's, or the target's; null before it is known.
  [[nodiscard]] const Manifest* manifest(bool draft) const {
    return draft ? draft_.get() : manifest_.get();
  }

  [[nodiscard]] std::uint64_t begun() const { return begun_; }

  [[nodiscard]] std::uint64_t returned() const { return returned_; }

  [[nodiscard]] TimePoint lastProgress() const { return lastProgress_; }

  [[nodiscard]] std::uint64_t passBytes() const { return passBytes_; }

  /// The engines, with the bytes written to them brought up to date.
  [[nodiscard]] const std::vector<FlightCall>& engines();
  /// Bytes due to an engine in the pass at hand.
  [[nodiscard]] std::uint64_t declared(std::size_t engine) const;

  void onStep(const Event& event, const StepResult& result) override;
  void onOperation(ActionKind kind, Duration limit) override;
  void onOperationEnd(ActionKind kind, const Status& status) override;
  void onDrain(Duration limit) override;
  void onPlan(const std::vector<std::uint64_t>& steps,
              const std::vector<std::uint64_t>& draftSteps,
              bool packs) override;
  void onHook(bool running) override;
  void onHookFailed(const Status& status) override;
  void onLink(const LinkNews& news) override;
  void onPhase(Phase left, double seconds, Phase entered, std::uint32_t attempt) override;
  void onCall(std::size_t engine, Goal goal, const Call& call, Deadline deadline) override;
  void onReply(std::size_t engine,
               Goal goal,
               const Call& call,
               const Reply& reply,
               const Ledger& ledger) override;
  void onDropped(std::size_t engine, Phase phase, const Status& cause) override;
  void onDeclared(const std::shared_ptr<const Manifest>& manifest,
                  const std::shared_ptr<const Manifest>& draft) override;
  void onTensor(std::uint64_t tensors, std::uint64_t bytes) override;

  void onEngine(std::size_t engine, const Ledger& ledger) override {
    next_.onEngine(engine, ledger);
  }

  void onVote(double seconds, const Status& status) override { next_.onVote(seconds, status); }

  void onFailure(Phase phase, const Status& status) override { next_.onFailure(phase, status); }

  void onChannel(bool built) override { next_.onChannel(built); }

  void onManifest(std::uint64_t tensors, std::uint64_t bytes) override {
    next_.onManifest(tensors, bytes);
  }

  void onBytes(std::uint64_t bytes) override { next_.onBytes(bytes); }

  void onNote(const std::string& note) override { next_.onNote(note); }

  void onEnd(const PushReport& report) override { next_.onEnd(report); }

 private:
  /// An event that tells where this rank stands now.
  [[nodiscard]] FlightEvent fresh(FlightKind kind) const;
  [[nodiscard]] std::int64_t micros() const;

  const Clock& clock_;
  const int rank_;
  PushObserver& next_;
  FlightRing ring_;
  std::function<std::uint64_t(std::size_t)> bytesSent_;
  TimePoint began_{};
  std::int64_t beganMicros_ = 0;
  PushState place_;  ///< but for its statuses and steps
  std::shared_ptr<const Manifest> manifest_;
  std::shared_ptr<const Manifest> draft_;
  std::optional<FlightOperation> operation_;
  std::optional<FlightOperation> drain_;
  std::vector<FlightCall> engines_;
  std::uint64_t begun_ = 0, returned_ = 0, passBytes_ = 0;
  TimePoint lastProgress_{};
};

}  // namespace pushrod::orchestrator
