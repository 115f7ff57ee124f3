// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "tests/sim/world.h"

namespace pushrod::sim {

/// One rank: its process, and what of the product runs in it.
struct World::RankProcess final : public orchestrator::PushObserver {
  RankProcess(World& owner, LinkHub& links, int number)
      : world(owner), rank(number), executor(owner.executor_), link(links, executor, number) {}

  void onStep(const orchestrator::Event& event, const orchestrator::StepResult& result) override;

  World& world;
  int rank;
  RankExecutor executor;
  SimLink link;
  SimCaller* sim = nullptr;
  std::unique_ptr<orchestrator::Caller> caller;
  std::unique_ptr<orchestrator::PushDriver> driver;
  TimePoint began{};
};

/// One start of the trainers' job: its processes, what connects them, and what rank 0 keeps from
/// push to push.
struct World::Job {
  std::unique_ptr<Agreements> agreements;
  std::unique_ptr<Gathers> gathers;
  std::unique_ptr<LinkHub> links;
  std::vector<std::unique_ptr<SimChunks>> memories;  ///< with plan.chunked, of ranks 0 and 1
  std::unique_ptr<SimPlane> plane;
  std::unique_ptr<SimPlane> packer;  ///< rank 1's, with plan.chunked
  std::vector<std::unique_ptr<EngineClient>> clients;
  std::vector<std::unique_ptr<RankProcess>> ranks;
  std::vector<orchestrator::Ledger> ledgers;
  std::vector<std::shared_ptr<const EngineIdentity>> known;  ///< at each engine's last good push
  std::uint64_t epoch = 0;
  bool incomplete = false;  ///< a rank is gone, or was stopped for too long

  [[nodiscard]] SimPlane* planeOf(int rank) const {
    return rank == 0 ? plane.get() : (rank == 1 ? packer.get() : nullptr);
  }
};

}  // namespace pushrod::sim
