// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/scenery.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "tests/sim/fake_engine.h"

namespace pushrod::sim {

namespace {

/// Who owns the i-th tensor.
int ownerOf(std::size_t i, const FaultPlan& plan) {
  const int last = plan.ranks - 1;
  switch (plan.owners) {
    case 1:
      return last;
    case 2:
      return i / kPerLayer % 2 == 0 ? 0 : last;
    case 3:
      return static_cast<int>(i) % std::min(plan.ranks, 3);
    default:
      return 0;
  }
}

Manifest manifestOf(const std::vector<const char*>& names, const FaultPlan& plan) {
  Manifest manifest;
  for (const char* const name : names) {
    const int owner = ownerOf(manifest.tensors.size(), plan);
    manifest.tensors.push_back(TensorSpec{name, DType::kFloat32, Shape{2}, owner});
  }
  return manifest;
}

Manifest target(const FaultPlan& plan) {
  return manifestOf({kTargetNames.begin(), kTargetNames.end()}, plan);
}

/// Limits as they are by default, or so short that some of what happens is longer.
void setLimits(TimeoutsConfig& limits, bool tight) {
  const auto either = [tight](int usual, int shorter) {
    return std::chrono::seconds(tight ? shorter : usual);
  };
  limits.push = either(1000, 60);
  limits.connect = either(20, 3);
  limits.startup = either(30, 4);
  limits.init = either(30, 4);
  limits.request = either(60, 6);
  limits.pause = either(15, 2);
  limits.resume = either(15, 2);
  limits.drain = either(10, 1);
  limits.gather = either(40, 4);
  limits.agreement = either(5, 1);
  limits.shutdown = either(20, 4);
}

}  // namespace

std::shared_ptr<const Manifest> theManifest(const FaultPlan& plan) {
  return std::make_shared<const Manifest>(target(plan));
}

std::shared_ptr<const Manifest> theDraft(const FaultPlan& plan) {
  return plan.draft ? std::make_shared<const Manifest>(manifestOf({"d0.q", "d0.k"}, plan))
                    : nullptr;
}

std::shared_ptr<const Manifest> otherManifest() {
  Manifest manifest = target(FaultPlan());
  manifest.tensors.back().shape = Shape{2, 1};
  return std::make_shared<const Manifest>(std::move(manifest));
}

Config theConfig(const FaultPlan& plan) {
  Config config;
  if (plan.quarantine) {
    config.engines.onLoss = OnLoss::kQuarantine;
    config.engines.minHealthy = plan.minHealthy;
    config.push.wave = plan.wave;
  }
  config.engines.wake = plan.wake;
  config.push.resend = plan.resend;
  config.push.flush = plan.flush;
  config.push.verify = !plan.verify                      ? Verify::kNone
                       : plan.checksums && plan.versions ? Verify::kChecksum
                                                         : Verify::kVersion;
  config.push.versionMarker = plan.marker;
  config.push.stop = plan.pass ? Stop::kPass : Stop::kChunk;
  config.push.checkReplicas = plan.replicas ? CheckReplicas::kDigest : CheckReplicas::kOff;
  config.transport.kind = TransportKind::kTcp;
  // Steps of one tensor too many for a layer: a pass can break in the middle of one.
  config.transport.buffer = plan.buffer;
  setLimits(config.timeouts, plan.tight);
  if (plan.pushLimit > Duration::zero()) {
    config.timeouts.push = plan.pushLimit;
    config.timeouts.shutdown = std::min(config.timeouts.shutdown, plan.pushLimit / 2);
  }
  for (int i = 0; i < plan.engines; ++i) {
    EngineConfig engine;
    engine.name = "e" + std::to_string(i);
    config.engines.list.push_back(engine);
  }
  return config;
}

}  // namespace pushrod::sim
