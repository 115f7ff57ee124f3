// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/driver/push_driver.h"
#include "tests/sim/fake_client.h"
#include "tests/sim/injector.h"
#include "tests/sim/invariants.h"
#include "tests/sim/sim_caller.h"
#include "tests/sim/sim_link.h"
#include "tests/support/virtual_executor.h"

namespace pushrod::sim {

/// What became of a run.
struct Outcome {
  std::vector<std::string> broken;  ///< promises
  std::vector<RankEnd> first;       ///< the first push
  std::uint64_t trace = 0;          ///< hash over every event
  std::uint64_t lastDraw = 0;       ///< the next random number
  std::vector<FaultSite> hits;      ///< the faults that struck, in their order
  bool hit = false;                 ///< the first fault did
  Phase hitIn = Phase::kIdle;
  bool secondHit = false;
  std::vector<SeamCall> calls;  ///< with World::Options::keepCalls, of the first push
  std::string log;              ///< with World::Options::verbose
  std::set<std::string_view> rows;
};

/// N ranks with real drivers, M engines, one virtual clock, and faults. Everything below the seams
/// is simulated; everything above is the product.
class World final {
 public:
  /// Rules taken out of what lies below the seams (known bad variants).
  struct Without {
    bool waitingForReaders = false;  ///< regions are written without waiting for answers
    bool limits = false;             ///< no limit of a rank ever passes
    bool pushLimit = false;          ///< a push has no limit as a whole
    bool fence = false;              ///< a rank does not hear that it was stopped
    bool losses = false;             ///< no rank hears that another is lost
    bool voteKeys = false;           ///< records are taken whatever vote they are of
    bool callIds = false;            ///< late replies are believed
    bool rebuild = false;            ///< an aborted channel is used again as it is
  };

  struct Options {
    FaultPlan plan;
    bool verbose = false;
    bool keepCalls = false;
    bool second = true;  ///< after the faults, a push without any
    Without without;
    /// Puts a decorator around a client (known bad variants).
    std::function<std::unique_ptr<EngineClient>(std::unique_ptr<EngineClient>, World&)> decorate;
    /// The same for a rank's caller.
    std::function<std::unique_ptr<orchestrator::Caller>(
        std::unique_ptr<orchestrator::Caller>, int rank, Executor&)>
        decorateCaller;
  };

  explicit World(Options options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] Outcome run();

  /// Rank 0's phase now.
  [[nodiscard]] Phase phase() const;
  /// Whether the present push carries the draft model as well. A job that was started anew does not
  /// know what the one before left of a draft: its first pushes must.
  [[nodiscard]] bool carriesDraft() const;
  /// The version of the present push.
  [[nodiscard]] std::string version() const;

 private:
  struct RankProcess;
  struct Job;

  // What there is (world_job.cc).
  void buildEngines();
  void beginJob();
  [[nodiscard]] std::vector<FakeEngine*> enginesThere() const;
  void buildMemories(Job& job);
  void buildSources(Job& job);
  void buildRanks(Job& job);
  void buildClients(Job& job);
  std::unique_ptr<orchestrator::Caller> buildCaller(Job& job, RankProcess& rank);
  std::vector<orchestrator::EngineSlot> slots();
  void start(RankProcess& rank);
  void ended(RankProcess& rank, orchestrator::PushDriver::Ending ending);
  void reportHang(const std::string& why);

  // What happens (world.cc).
  void push(bool sound);
  void settle();
  void heal();

  [[nodiscard]] bool broke() const { return !invariants_->broken().empty(); }

  /// When the trainer's own watchdog ends a call of the source that nothing else can end.
  [[nodiscard]] Duration sourceLimit() const;
  [[nodiscard]] bool allEnded() const;
  void loop();
  Fault seam(const SeamCall& call, const std::string& what);
  void strike(const Fault& fault, int rank);
  void kill(Job& job, int rank);
  void note(int rank, std::string_view text, std::string_view more = {});
  void hash(std::string_view text);

  Options options_;
  testing::VirtualExecutor executor_;
  Pace pace_;
  Config config_;
  std::vector<std::unique_ptr<FakeEngine>> engines_;
  std::unique_ptr<Invariants> invariants_;
  /// The last one runs; what the others sent may still arrive.
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<RankEnd> ends_;
  Injector injector_;
  std::vector<FaultSite> hits_;
  std::vector<SeamCall> calls_;
  int pushes_ = 0;
  bool healed_ = false;
  TimePoint wakes_ = TimePoint::max();  ///< rank 0, after it was stopped for long in this push
  std::uint64_t trace_;
  std::string log_;
  std::set<std::string_view> rows_;
};

/// One run of `plan`, with its checks.
[[nodiscard]] Outcome simulate(const FaultPlan& plan, bool verbose = false);

}  // namespace pushrod::sim
