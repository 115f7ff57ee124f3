// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <pushrod/coordinator.h>

#include "net/io_executor.h"
#include "orchestrator/driver/push_driver.h"
#include "orchestrator/driver/thread_caller.h"
#include "orchestrator/engine_roster.h"
#include "orchestrator/factory.h"
#include "orchestrator/flight/collector.h"
#include "orchestrator/flight/recorder.h"
#include "orchestrator/status/push_monitor.h"
#include "orchestrator/status/stall_watch.h"
#include "orchestrator/status/status_server.h"

namespace pushrod::orchestrator {

/// What one rank keeps from push to push: the control thread and all that lives on it. Created and
/// destroyed by the facade; the functions marked "control" run on the control thread.
class PushSession {
 public:
  /// `flightFolder`: where flight records go; empty: nowhere.
  PushSession(Config config, Rank rank, LogSink& log, std::string flightFolder);
  /// From any thread but the control thread: ends what runs and destroys what lives there.
  ~PushSession();
  PushSession(const PushSession&) = delete;
  PushSession& operator=(const PushSession&) = delete;

  Status compose(const std::string& privateStore);
  /// The trainer's thread, as push(): the ranks meet.
  Status connect();
  /// The trainer's thread, between pushes: the engines from now on. Nothing on ranks but 0.
  Status setEngines(const std::vector<EngineConfig>& list);
  /// The trainer's thread.
  Result<PushReport> push(const PushRequest& request);
  void cancel(const Status& reason);
  /// Any thread.
  void logState();
  [[nodiscard]] std::string metricsAddress() const;

 private:
  struct Ended {
    PushReport report;
    bool known = true;
    std::string flight;  ///< the record's text; empty: this rank writes none
  };

  // Control.
  void begin(const PushRequest& request, ThreadCaller& caller, Ended& ended);
  [[nodiscard]] Status readEngines();
  Status takeEngines(const std::vector<EngineConfig>& list, const std::string& source);
  Status useEngines(const std::vector<EngineConfig>& list);
  [[nodiscard]] std::vector<EngineSlot> makeSlots(const std::string& version,
                                                  const std::string& marker);
  [[nodiscard]] std::vector<EngineStatus> statusOf(const std::vector<EngineSlot>& slots) const;
  void keep(PushDriver::Ending& ending, bool good);
  void noteOlderVersion(const std::string& version);
  /// The driver has ended: brings the flight record together where there is to be one, then lets
  /// push() return.
  void settle(ThreadCaller& caller, Ended& ended);
  [[nodiscard]] std::string flightText(const Ended& ended, FlightCollector::Parts parts) const;
  /// The trainer's thread.
  void leaveFlight(const std::string& text);
  void serve();

  Config config_;  ///< engines.list may change between pushes, nothing else does
  const Rank rank_;
  LogSink& log_;
  const std::string flightFolder_;
  const std::set<TransportKind> senders_;  ///< that this rank can use; empty: all
  metrics::PushMetrics metrics_;
  StatusBoard board_;
  net::IoExecutor executor_;

  // Live on the control thread.
  std::unique_ptr<Adapters> adapters_;
  std::unique_ptr<PushMonitor> monitor_;
  std::unique_ptr<StatusServer> server_;
  std::unique_ptr<FlightRecorder> recorder_;
  std::unique_ptr<FlightCollector> collector_;
  std::unique_ptr<StallWatch> watch_;
  std::unique_ptr<PushDriver> driver_;
  EngineRoster roster_;
  Status refusal_;  ///< why rank 0 cannot push although it can meet the others

  using Names = std::shared_ptr<const std::set<std::string>>;
  static void addNames(Names& names, const Manifest& manifest);

  Names earlierNames_;       ///< null before a good push
  Names earlierDraftNames_;  ///< the same of pushes with a draft model
  std::string lastVersion_;  ///< of the last good push

  std::string address_;
  std::uint64_t epoch_ = 0;
  bool meeting_ = false;   ///< the trainer's thread is in connect()
  bool settling_ = false;  ///< a push has ended and its flight record is collected
  Status cancelled_;       ///< an order to stop that came before the push it stops
};

}  // namespace pushrod::orchestrator
