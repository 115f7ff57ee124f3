// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/scenery.h"

#include <chrono>
#include <string>
#include <utility>

#include "tests/sim/fake_engine.h"

namespace pushrod::sim {

std::shared_ptr<const Manifest> theManifest() {
  Manifest manifest;
  const char* const names[kTensors] = {"l0.q", "l0.k", "l1.q", "l1.k"};
  for (const char* const name : names) {
    manifest.tensors.push_back(TensorSpec{name, DType::kFloat32, Shape{2}, 0});
  }
  return std::make_shared<const Manifest>(std::move(manifest));
}

Config theConfig(const FaultPlan& plan) {
  Config config;
  if (plan.quarantine) {
    config.engines.onLoss = OnLoss::kQuarantine;
    config.push.wave = 1;
  }
  config.push.stop = plan.pass ? Stop::kPass : Stop::kChunk;
  config.transport.kind = TransportKind::kTcp;
  // Steps of one tensor too many for a layer: a pass can break in the middle of one.
  config.transport.buffer = 20;
  TimeoutsConfig& limits = config.timeouts;
  limits.push = std::chrono::seconds(1000);
  limits.connect = std::chrono::seconds(20);
  limits.startup = std::chrono::seconds(30);
  limits.init = std::chrono::seconds(30);
  limits.request = std::chrono::seconds(60);
  limits.pause = std::chrono::seconds(15);
  limits.resume = std::chrono::seconds(15);
  limits.drain = std::chrono::seconds(10);
  limits.gather = std::chrono::seconds(40);
  limits.agreement = std::chrono::seconds(5);
  limits.shutdown = std::chrono::seconds(20);
  for (int i = 0; i < plan.engines; ++i) {
    EngineConfig engine;
    engine.name = "e" + std::to_string(i);
    config.engines.list.push_back(engine);
  }
  return config;
}

}  // namespace pushrod::sim
