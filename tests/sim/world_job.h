// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "tests/sim/sim_source.h"
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
};

/// One start of the trainers' job: its processes, what connects them, and what rank 0 keeps from
/// push to push.
struct World::Job {
  std::unique_ptr<Agreements> agreements;
  std::unique_ptr<Gathers> gathers;
  std::unique_ptr<LinkHub> links;
  std::vector<std::unique_ptr<SimChunks>> memories;  ///< with plan.chunked, of ranks 0 and 1
  /// Of the ranks that send, by rank: 0 alone, with plan.chunked 1 as well, with owners all.
  std::vector<std::unique_ptr<SimPlane>> planes;
  std::vector<std::unique_ptr<SimSource>> sources;  ///< with owners, of all ranks
  std::vector<std::unique_ptr<EngineClient>> clients;
  std::vector<std::unique_ptr<RankProcess>> ranks;
  std::vector<orchestrator::Ledger> ledgers;
  std::vector<std::shared_ptr<const EngineIdentity>> known;  ///< at each engine's last good push
  std::uint64_t epoch = 0;
  bool incomplete = false;  ///< a rank is gone, or was stopped for too long

  [[nodiscard]] SimPlane* planeOf(int rank) const {
    const auto place = static_cast<std::size_t>(rank);
    return place < planes.size() ? planes[place].get() : nullptr;
  }

  [[nodiscard]] SimSource* sourceOf(int rank) const {
    return sources.empty() ? nullptr : sources[static_cast<std::size_t>(rank)].get();
  }

  /// Whether somebody listens wherever an engine has to connect to for `channel`.
  [[nodiscard]] bool carries(std::uint64_t channel) const;
};

}  // namespace pushrod::sim
