// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "orchestrator/driver/caller.h"
#include "tests/sim/fault_plan.h"
#include "tests/sim/meetings.h"
#include "tests/sim/rank_executor.h"
#include "tests/sim/sim_plane.h"
#include "transports/owned_streams.h"

namespace pushrod::sim {

/// What a rank's caller works with; all of it outlives the caller.
struct CallerWorld {
  RankExecutor& executor;
  Pace& pace;
  int rank = 0;
  int slowness = 1;
  Agreements& agreements;
  Gathers& gathers;
  SimPlane* plane = nullptr;                  ///< of ranks that send
  transports::OwnedStreams* owned = nullptr;  ///< where several ranks send
  std::shared_ptr<const Manifest> manifest;
  /// Counts a seam call and returns the fault that happens at it.
  std::function<Fault(Seam, orchestrator::ActionKind, const std::string&)> fault;
  Complain complain;
};

/// One rank's trainer thread in virtual time: every operation really waits for the others.
class SimCaller final : public orchestrator::Caller {
 public:
  explicit SimCaller(CallerWorld world) : world_(std::move(world)) {}

  /// The number of the push, which is the content of its tensors. `draft` is null where it carries
  /// no draft model.
  void beginPush(int number, std::shared_ptr<const Manifest> draft) {
    push_ = number;
    draft_ = std::move(draft);
    index_ = 0;
    world_.agreements.beginPush(world_.rank);
  }

  void perform(orchestrator::CallerRequest request, Done done) override;

  bool abortSource() override { return world_.gathers.abort(world_.rank); }

  void interruptPlane(const Status& reason) override {
    if (world_.plane != nullptr) {
      world_.plane->interrupt(reason);
    }
  }

  void interruptVote(const Status& reason) override {
    world_.agreements.interrupt(world_.rank, reason);
  }

 private:
  void begin(const orchestrator::CallerRequest& request, const Done& done);
  void meet(const orchestrator::CallerRequest& request, const Done& done);
  void collective(const orchestrator::CallerRequest& request,
                  std::uint32_t step,
                  std::string bytes,
                  std::function<void(const Agreements::Result&)> done);
  void exchange(const orchestrator::CallerRequest& request,
                orchestrator::CallerResult result,
                const Done& done);
  void gather(const orchestrator::CallerRequest& request, const Done& done);
  void plane(const orchestrator::CallerRequest& request, const Done& done);
  void carry(const orchestrator::CallerRequest& request, const Done& done);
  void finish(const Done& done, orchestrator::CallerResult result);
  [[nodiscard]] std::shared_ptr<const common::ContentDigests> digests() const;

  CallerWorld world_;
  int push_ = 0;
  std::shared_ptr<const Manifest> draft_;
  std::shared_ptr<const Manifest> pass_;
  std::size_t index_ = 0;  ///< tensors gathered in this pass
  bool hashes_ = false;    ///< of this pass
  Status planeBegun_;      ///< as in the product's caller
};

}  // namespace pushrod::sim
