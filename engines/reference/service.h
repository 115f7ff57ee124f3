// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pushrod/executor.h>

#include "engines/reference/core.h"
#include "engines/reference/exchange.h"
#include "engines/reference/faults.h"
#include "engines/reference/routes.h"

namespace pushrod::engines::reference {

/// What the engine says of itself.
struct Facts {
  std::string name;
  std::string model;
  std::string hostId;
  std::string prefix;
  int worldSize = 1;  ///< all workers behind the address
  int pipelineStages = 1;
  int dataParallel = 1;
};

/// Pause and sleep.
struct Serving {
  bool paused = false;
  bool keeps = false;  ///< paused in mode keep
  bool weightsAsleep = false;
  bool cacheAsleep = false;
  int sleepLevel = 0;
  std::deque<ExchangePtr> parked;  ///< generation requests that wait for the resume
};

/// What all cores answered to one call.
struct FanResult {
  bool ok = true;
  std::string error;                       ///< of the first core that failed
  std::vector<boost::json::array> values;  ///< per core, one per worker
};

/// The API server of the engine: requests in, calls to the cores, answers out. Control thread only.
class Service {
 public:
  Service(Executor& executor,
          WorkerShared& shared,
          Facts facts,
          std::vector<std::shared_ptr<Core>> cores,
          FaultTable table);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service();

  void handle(http::ServerRequest request, std::unique_ptr<http::Responder> responder);

  // What handlers use.
  using FanDone = std::function<void(const FanResult&)>;
  /// Asks the workers of every core; answers at the first failure, else when all are done.
  void collective(const WorkerCall& call, FanDone done);
  /// Runs `each` for every core when its turn comes, then `done`.
  void utility(const std::function<void(Core&)>& each, std::function<void()> done);
  void after(Duration delay, std::function<void()> task);
  /// Keeps a request that will never be answered.
  void hold(ExchangePtr exchange);
  /// No engine call is answered any more, /health says 503, then the port closes.
  void freeze();
  /// One generation request, in its turn on the core.
  void generate(const ExchangePtr& exchange);
  [[nodiscard]] bool torn() const;
  [[nodiscard]] std::vector<WorkerView> views() const;

  /// The first core's version.
  [[nodiscard]] const std::string& version() const { return cores.front()->version; }

  /// Counts a finished weight operation for /metrics.
  void countOperation(const std::string& name, TimePoint begun);

  struct Operation {
    std::uint64_t count = 0;
    double seconds = 0;
  };

  struct Resume {
    std::string version;
    bool torn = false;
  };

  Executor& executor;
  WorkerShared& shared;
  const Profile& profile;
  const Facts facts;
  std::vector<std::shared_ptr<Core>> cores;
  FaultTable faults;
  Serving serving;
  std::vector<Resume> resumes;
  std::map<std::string, Operation> operations;
  std::map<std::string, int> inFlight;
  bool dead = false;
  std::function<void()> closePort;           ///< set by the owner
  std::function<std::size_t()> connections;  ///< HTTP connections, set by the owner
  TimePoint lastRequest;

 private:
  void dispatch(const Route& route, const ExchangePtr& exchange);
  /// Whether the fault took the whole request.
  bool applyFault(const Route& route, const ExchangePtr& exchange);
  void answerStatus(const Route& route, const ExchangePtr& exchange);

  /// This update's place in its session, where each chunk is an update of its own.
  std::optional<std::uint32_t> countChunk(const Route& route);

  std::uint32_t chunks_ = 0;  ///< updates since the last start
  std::deque<ExchangePtr> held_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace pushrod::engines::reference
