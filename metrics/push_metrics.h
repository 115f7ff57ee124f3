// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/data_plane.h>
#include <pushrod/report.h>
#include <pushrod/status.h>

namespace pushrod::metrics {

/// What became of one HTTP request, the `result` label.
enum class RequestResult { kOk, kRejected, kError, kTimeout, kUnreachable };

/// Gauges of one engine.
struct EngineGauges {
  bool up = false;
  bool paused = false;
  bool quarantined = false;
  bool current = false;
  int replyLag = 0;
};

/// Every metric family of a job, all series created at 0 up front from closed label sets; `engine`
/// is the only label taken from configuration. Thread-safe.
class PushMetrics {
 public:
  /// `transport` is the label of this configuration's pushes (kMixed when engines differ).
  PushMetrics(TransportKind transport, const std::vector<std::string>& engines);
  ~PushMetrics();
  PushMetrics(const PushMetrics&) = delete;
  PushMetrics& operator=(const PushMetrics&) = delete;

  void pushStarted();
  /// Counts the outcome, observes the duration and sets the last-push and last-success times.
  void pushEnded(PushOutcome outcome, double seconds);
  void phaseEntered(Phase phase);
  void phaseLeft(Phase phase, double seconds);
  void pausedSeconds(double seconds);
  /// `route` is callName's or another contract route's last path element.
  void request(std::string_view engine,
               std::string_view route,
               RequestResult result,
               double seconds);
  void timeout(Phase phase);
  void failure(Phase phase, Code code);
  void resend();
  void channelRebuilt();
  void channelAborted();
  void staleSessionClosed(std::string_view engine);
  void versionMismatch(std::string_view engine);
  void emptySession(std::string_view engine);
  void casts(std::uint64_t count);
  void bytesSent(std::uint64_t bytes);
  void agreement(double seconds);
  void agreementFailed(Code code);
  void buffers(std::uint64_t allocated, std::uint64_t inFlight);
  void engine(std::string_view engine, const EngineGauges& gauges);
  /// Creates series of new engines and drops those of engines no longer listed.
  void setEngines(const std::vector<std::string>& engines);

  /// The page in Prometheus' text format.
  [[nodiscard]] std::string render() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pushrod::metrics
