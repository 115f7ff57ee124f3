// SPDX-License-Identifier: Apache-2.0
// The phase `prepare`: what is sent in which steps, and what the engines will be told of it.
#include <algorithm>
#include <utility>

#include "orchestrator/driver/push_driver.h"
#include "transports/chunk_plan.h"

namespace pushrod::orchestrator {

Result<Plan> PushDriver::makePlan(const Manifest& manifest) {
  Plan plan;
  for (const std::size_t end : transports::stepEnds(manifest, parts_.config.transport.buffer)) {
    plan.steps.push_back(end);
  }
  if (parts_.owned != nullptr) {
    const Status planned = planRuns(plan, manifest);
    return planned.ok() ? Result<Plan>(std::move(plan)) : planned;
  }
  if (Status planned = planChunks(plan, manifest); !planned.ok()) {
    return planned;
  }
  const auto& slots = runner_.slots();
  if (std::all_of(slots.begin(), slots.end(), [this](const EngineSlot& slot) {
        return takesChunks(slot);
      })) {
    return plan;
  }
  Result<std::string> body = parts_.plane->updateInfo(manifest);
  if (!body.ok()) {
    return body.status();
  }
  // Encoded once, shared by all engines.
  const auto shared = std::make_shared<const std::string>(std::move(*body));
  for (EngineSlot& slot : runner_.slots()) {
    slot.facts.updateBody = shared;
  }
  return plan;
}

/// Both passes; what goes to the engines is kept until their session begins.
Result<Plan> PushDriver::planBoth() {
  if (push_.earlierNames == nullptr) {
    // Once in a job's life is enough.
    noteDtypes();
  }
  const auto keep = [this](std::vector<Bodies>& bodies) {
    bodies.clear();
    for (const EngineSlot& slot : runner_.slots()) {
      bodies.push_back({slot.facts.updateBody, slot.facts.chunkBodies});
    }
  };
  Result<Plan> plan = makePlan(*manifest_);
  keep(targetBodies_);
  if (!plan.ok() || draftManifest_ == nullptr) {
    return plan;
  }
  if (!plan->segments.empty()) {
    return Status(Code::kInvalidArgument,
                  "a draft model over transport shm is not in this build; set transport.kind: tcp "
                  "for every engine, or push without draft weights",
                  Outcome::kNotSent);
  }
  Result<Plan> draft = makePlan(*draftManifest_);
  keep(draftBodies_);
  if (!draft.ok()) {
    return draft.status().prefixed("the draft model");
  }
  plan->draftSteps = std::move(draft->steps);
  return plan;
}

/// With a `refusal` it only takes part, so that the others need not wait.
void PushDriver::startPrepare(const Status& refusal) {
  CallerRequest request;
  request.kind = ActionKind::kPrepare;
  request.key = key();
  request.deadline = voteDeadline();
  request.manifest = manifest_;
  request.draftManifest = draftManifest_;
  request.exchange = parts_.owned != nullptr;
  prepareError_ = refusal;
  if (state_.leader && refusal.ok()) {
    Result<Plan> plan = planBoth();
    Status announced = plan.status();
    if (plan.ok() && request.exchange) {
      Result<std::string> invitation = inviteSources();
      announced = invitation.status();
      request.invitation = invitation.ok() ? std::move(*invitation) : std::string();
    } else if (plan.ok()) {
      announced = announceChannel();
    }
    if (announced.ok()) {
      request.bytes = plan->encode();
    } else {
      prepareError_ = mine(announced);
    }
  }
  call(std::move(request));
}

void PushDriver::onPrepared(const CallerResult& result) {
  if (!result.status.ok()) {
    holdLostVote(mine(result.status));
    return;
  }
  Status status = prepareError_;
  if (state_.leader && status.ok()) {
    const bool kept = result.invitation == transports::OwnedStreams::kKeep;
    if (const Status taken = takeAnswers(result); !taken.ok() && kept) {
      // Built anew when the engines are told of it.
      parts_.plane->abort(taken);
    } else if (!taken.ok()) {
      status = mine(taken);
    }
  }
  if (!result.prepared.ok()) {
    status.merge(mine(result.prepared));
  }
  Result<Plan> plan = Plan::decode(result.bytes,
                                   manifest_->tensors.size(),
                                   draftManifest_ == nullptr ? 0 : draftManifest_->tensors.size());
  if (plan.ok()) {
    state_.steps = plan->steps;
    state_.draftSteps = plan->draftSteps;
    state_.packs = !state_.leader && (plan->packs(parts_.rank.rank) || ownsSome());
    parts_.observer.onPlan(state_.steps, state_.draftSteps, state_.packs);
  } else {
    status.merge(mine(plan.status()));
  }
  feed(Event{EventKind::kLocalDone, status, {}});
}

}  // namespace pushrod::orchestrator
