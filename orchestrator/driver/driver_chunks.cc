// SPDX-License-Identifier: Apache-2.0
// Engines whose stream is one update per chunk (shm), on rank 0: which chunk they may be told of,
// and what their answers mean for the memory that is written next.
#include <algorithm>
#include <utility>

#include "orchestrator/driver/push_driver.h"

namespace pushrod::orchestrator {

bool PushDriver::takesChunks(const EngineSlot& slot) const {
  return parts_.chunks != nullptr && parts_.chunks->takes(slot.client->name());
}

/// Their cuts decide the steps, also where other engines take one stream.
Status PushDriver::planChunks(Plan& plan, const Manifest& manifest) {
  auto& slots = runner_.slots();
  if (std::none_of(slots.begin(), slots.end(), [this](const EngineSlot& slot) {
        return takesChunks(slot);
      })) {
    return {};
  }
  Result<transports::ChunkPass> pass = parts_.chunks->plan(manifest);
  if (!pass.ok()) {
    return pass.status();
  }
  plan.steps.assign(pass->ends.begin(), pass->ends.end());
  plan.segments = pass->unique;
  plan.packers = pass->packers;
  const auto bodies = std::make_shared<const std::vector<std::shared_ptr<const std::string>>>(
      std::move(pass->bodies));
  for (EngineSlot& slot : slots) {
    if (takesChunks(slot)) {
      slot.facts.chunkBodies = bodies;
    }
  }
  return {};
}

/// A pass begins: no chunk is packed yet, and these engines will answer.
void PushDriver::expectChunks() {
  std::vector<std::string> names;
  for (EngineSlot& slot : runner_.slots()) {
    // An owner's run is read as it is sent; only chunks must be packed first.
    slot.facts.chunksReady = parts_.owned != nullptr ? 1 : 0;
    if (slot.facts.chunkBodies != nullptr && !slot.ledger.dropped) {
      names.push_back(slot.client->name());
    }
  }
  if (parts_.chunks != nullptr) {
    parts_.chunks->expect(names);
  }
  if (parts_.owned != nullptr) {
    parts_.owned->expect(names);
  }
}

/// After a step's vote: what was agreed as packed on every host may be read.
void PushDriver::releaseChunks() {
  const bool last = state_.stage == Stage::kEnd;
  if (parts_.chunks == nullptr || !state_.leader || state_.passingOn ||
      (!last && state_.stage != Stage::kNext)) {
    return;
  }
  for (EngineSlot& slot : runner_.slots()) {
    slot.facts.chunksReady = last ? state_.passSteps().size() : state_.stepIndex;
  }
  runner_.release();
}

void PushDriver::countChunk(const EngineSlot& slot, const Call& call, const Reply& reply) {
  if (call.kind != CallKind::kUpdate || !reply.status.ok() || slot.facts.chunkBodies == nullptr) {
    return;
  }
  if (parts_.owned != nullptr) {
    parts_.owned->answered(slot.client->name(), slot.ledger.chunksDone);
    releaseRun();
  } else {
    parts_.chunks->answered(slot.client->name(), slot.ledger.chunksDone);
  }
}

}  // namespace pushrod::orchestrator
