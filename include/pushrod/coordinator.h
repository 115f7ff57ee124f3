// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <pushrod/config.h>
#include <pushrod/rank.h>
#include <pushrod/report.h>
#include <pushrod/weight_source.h>

namespace pushrod {

/// Where a running push stands, for progress displays.
struct PushProgress {
  Phase phase = Phase::kIdle;
  int attempt = 1;
  std::uint64_t tensors = 0;  ///< gathered on this rank in this pass
  std::uint64_t bytes = 0;    ///< of those tensors
  std::uint64_t totalTensors = 0;
  std::uint64_t totalBytes = 0;
  int engines = 0;
  int enginesReady = 0;  ///< reached the current phase's goal (rank 0)
};

/// Bytes of the longest version that can be pushed.
inline constexpr std::size_t kLongestVersion = 128;

struct PushRequest {
  /// Opaque: 1 to kLongestVersion bytes of UTF-8 text without control characters. Any other is
  /// refused (invalidArgument) before the ranks meet.
  std::string version;
  WeightSource* weights = nullptr;  ///< must outlive push()
  /// The draft model's pass, in the same push after the target's: both or none are published, and a
  /// resend is of both. Null: the push is of the target alone. Must outlive push().
  WeightSource* draftWeights = nullptr;
  /// Called on Pushrod's control thread, at most every 100 ms; must return at once.
  std::function<void(const PushProgress&)> progress = {};
  /// Called on the thread that called push() as this rank enters a phase: before its work there or,
  /// where it has none, before its vote (in `check` once the ranks have met). A failure becomes
  /// this rank's own failure in that phase. The push waits for it; when it must end meanwhile,
  /// the source's abort() is called, also outside its own calls. An exception becomes `internal`.
  std::function<Status(Phase phase, int attempt)> onPhase = {};
};

struct CoordinatorOptions {
  /// Receives every log text; null: standard error in the configured format. Must outlive the
  /// object.
  LogSink* logSink = nullptr;
  /// With `ranks.store: auto`: a folder of this host that all ranks of the job share and nobody
  /// else uses; they meet there instead of at $MASTER_ADDR. Empty: none.
  std::string privateStore = {};
  /// Where rank 0 leaves a flight record of each push that failed or was resent, the last 20 of the
  /// job; made where it is missing. Empty: none. One that cannot be written is a warning.
  std::string flightRecord = ".";
};

/// One trainer rank's handle on pushes. Every rank of the job creates one and calls push() in the
/// same order with the same version. Blocking, one caller at a time; cancel() from any thread. Owns
/// one control thread and, on rank 0, the metrics server. The destructor cancels a running push and
/// joins within a bound; connections to engines are closed, a paused engine stays paused.
class PushCoordinator {
 public:
  /// Checks the configuration against this build and starts the control thread. Contacts nobody.
  static Result<std::unique_ptr<PushCoordinator>> create(const Config& config,
                                                         const Result<Rank>& rank,
                                                         const CoordinatorOptions& options = {});
  ~PushCoordinator();
  PushCoordinator(const PushCoordinator&) = delete;
  PushCoordinator& operator=(const PushCoordinator&) = delete;

  /// The ranks meet, within timeouts.connect: a collective over all of them, which the first push
  /// does too. A trainer that calls it early learns early which rank is missing. No engine is
  /// contacted.
  Status connect();
  /// Replaces engines.list before the next push. Only rank 0's call counts; on others it does
  /// nothing. Refused during a push, with engines.file, and for a transport that no engine of the
  /// configuration uses; the engines then stay as they were. What left the list is left as it is.
  Status setEngines(const std::vector<EngineConfig>& engines);
  /// One push, a collective over all ranks. Returns by timeouts.push. The report of a failed or
  /// refused push is in the result, not an error; an error means that no push was made or that its
  /// verdict could not be learnt here (code unavailable: outcome unknown).
  Result<PushReport> push(const PushRequest& request);
  /// Ends the running push on all ranks as a failed one; engines stay paused unless verified. When
  /// none runs, the next one ends as soon as it begins. Any thread. `reason` becomes the first
  /// cause.
  void cancel(const std::string& reason);
  /// Logs, as warnings, what the running push waits for: each rank's phase, step, tensor and
  /// gathers, each engine's outstanding call, and whether they move; /status shows the same. Any
  /// thread, returns at once; not from a signal handler, but from a thread that waits for signals.
  void logState();
  /// Host and port of the status server, empty when there is none.
  [[nodiscard]] std::string metricsAddress() const;

 private:
  struct Impl;
  explicit PushCoordinator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pushrod
