// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pushrod/weight_source.h>

#include "tools/sources/drill_plan.h"
#include "tools/sources/share_gather.h"

namespace pushrod::tools {

/// Does to this process what a fault says. The exceptions that act() may throw are the point of it.
class FaultActor {
 public:
  FaultActor() = default;
  FaultActor(const FaultActor&) = delete;
  FaultActor& operator=(const FaultActor&) = delete;
  virtual ~FaultActor() = default;

  /// Throws, hangs, stops or ends the process. A failure: the hang was ended.
  virtual Status act(const DrillFault& fault) = 0;
  /// Ends a hang under way. Any thread.
  virtual void endHang() noexcept = 0;
};

/// The weights of one push of a drill, as a trainer would yield them: each rank makes its share of
/// every tensor and the ranks gather them, so that a pass is a real collective. This rank's planned
/// faults happen on the way. A rank whose fault changes what it yields gathers in step with the
/// others. All references must outlive it.
class DrillSource final : public WeightSource {
 public:
  /// `draft`: it is the draft model's, with that one's faults.
  DrillSource(const DrillPlan& plan,
              const DrillPush& push,
              ShareGather& gather,
              FaultActor& actor,
              bool draft = false);

  Result<Manifest> manifest() override;
  Status begin() override;
  Result<std::optional<TensorView>> next() override;
  bool abort() noexcept override;
  bool recover() override;

  /// For PushRequest::onPhase.
  Status enter(Phase phase);

 private:
  /// What one call of next() yields.
  struct Item {
    std::size_t tensor = 0;
    bool extra = false;
    bool wrongShape = false;
    bool otherValues = false;
  };

  using Bytes = std::unique_ptr<std::byte[]>;

  [[nodiscard]] std::vector<DrillFault> faultsOfPass() const;
  void planItems();
  Status actAt(std::size_t position);
  Status gatherTensor(std::size_t index);
  /// The tensor's elements in its layout; those of an alias are its target's. `gathered`: they
  /// stand in stored_.
  Result<std::byte*> memoryOf(std::size_t index, bool gathered);
  Result<TensorView> view(const Item& item, bool gathered);

  const DrillPlan& plan_;
  const DrillPush& push_;
  ShareGather& gather_;
  FaultActor& actor_;
  std::vector<DrillFault> mine_;
  std::vector<int> entered_;  ///< per fault: how often its phase was entered

  int pass_ = 0;
  std::size_t position_ = 0;
  std::vector<DrillFault> active_;
  std::vector<Item> items_;
  std::vector<bool> shared_;           ///< tensors that others are aliases of
  std::map<std::size_t, Bytes> kept_;  ///< their memory, of this pass
  Bytes stored_, arranged_;
  std::atomic<bool> gathering_{false};
};

}  // namespace pushrod::tools
