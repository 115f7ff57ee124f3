// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/driver/push_driver.h"
#include "tests/sim/fake_client.h"
#include "tests/sim/invariants.h"
#include "tests/sim/sim_caller.h"
#include "tests/sim/sim_link.h"
#include "tests/support/virtual_executor.h"

namespace pushrod::sim {

/// What became of a run.
struct Outcome {
  std::vector<std::string> broken;  ///< promises
  std::vector<RankEnd> first;       ///< the push with the fault
  std::uint64_t trace = 0;          ///< hash over every event
  std::uint64_t seams = 0;          ///< seam calls of the push, of the plan's class
  bool hit = false;
  Phase hitIn = Phase::kIdle;
  bool secondHit = false;
  std::string log;  ///< with World::Options::verbose
  std::set<std::string_view> rows;
};

/// N ranks with real drivers, M engines, one virtual clock, one fault. Everything below the seams
/// is simulated; everything above is the product.
class World final {
 public:
  struct Options {
    FaultPlan plan;
    bool verbose = false;
    bool second = true;  ///< after a failed push, one without faults
    /// Regions are written without waiting for answers (known bad variant).
    bool impatient = false;
    /// Puts a decorator around a client (known bad variants).
    std::function<std::unique_ptr<EngineClient>(std::unique_ptr<EngineClient>, World&)> decorate;
    /// The same for a rank's caller.
    std::function<std::unique_ptr<orchestrator::Caller>(
        std::unique_ptr<orchestrator::Caller>, int rank, Executor&)>
        decorateCaller;
    bool unarmed = false;  ///< no limit of a rank ever passes (a known bad variant)
  };

  explicit World(Options options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] Outcome run();

  /// Rank 0's phase now.
  [[nodiscard]] Phase phase() const;

 private:
  struct RankProcess;

  void buildEngines();
  void buildMemories(const std::vector<FakeEngine*>& engines);
  [[nodiscard]] SimPlane* planeOf(int rank) const;
  void buildRanks();
  void push(int number);
  void start(RankProcess& rank, int number);
  std::vector<orchestrator::EngineSlot> slots(int number);
  void ended(RankProcess& rank, orchestrator::PushDriver::Ending ending);
  [[nodiscard]] bool allEnded() const;
  void loop();
  void reportHang(const std::string& why);
  FaultKind seam(Seam seam, int rank, const std::string& what, std::optional<CallKind> call);
  FaultKind secondFault(Seam where, int rank);
  void strike(FaultKind kind, int rank);
  void note(int rank, const std::string& text);

  Options options_;
  testing::VirtualExecutor executor_;
  Config config_;
  std::vector<std::unique_ptr<FakeEngine>> engines_;
  std::unique_ptr<Invariants> invariants_;
  std::unique_ptr<Agreements> agreements_;
  std::unique_ptr<Gathers> gathers_;
  std::unique_ptr<LinkHub> links_;
  std::vector<std::unique_ptr<SimChunks>> memories_;  ///< with plan.chunked, of ranks 0 and 1
  std::unique_ptr<SimPlane> plane_;
  std::unique_ptr<SimPlane> packer_;  ///< rank 1's, with plan.chunked
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  std::vector<std::unique_ptr<EngineClient>> clients_;
  std::vector<orchestrator::Ledger> ledgers_;
  std::vector<RankEnd> ends_;
  FaultSite site_;
  std::uint64_t counts_[kSeams] = {};
  std::uint64_t total_ = 0;
  std::uint64_t afterFirst_ = 0;
  bool secondHit_ = false;
  int pushes_ = 0;
  std::uint64_t trace_;
  std::string log_;
  std::set<std::string_view> rows_;
};

/// One run of `plan`, with its checks.
[[nodiscard]] Outcome simulate(const FaultPlan& plan, bool verbose = false);

}  // namespace pushrod::sim
