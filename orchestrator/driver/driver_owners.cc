// SPDX-License-Identifier: Apache-2.0
// Tensors that are sent by the ranks that own them: what these are told and answer before a channel
// can be opened, and how a failure of one ends the streams of all.
#include <algorithm>
#include <utility>

#include "orchestrator/driver/push_driver.h"

namespace pushrod::orchestrator {

/// A run of one owner is an update; its end is a step's end, where rank 0 waits for the answers.
Status PushDriver::planRuns(Plan& plan, const Manifest& manifest) {
  Result<transports::OwnedPass> pass = parts_.owned->plan(manifest, owners());
  if (!pass.ok()) {
    return pass.status();
  }
  plan.steps.assign(pass->ends.begin(), pass->ends.end());
  const auto bodies = std::make_shared<const std::vector<std::shared_ptr<const std::string>>>(
      std::move(pass->bodies));
  for (EngineSlot& slot : runner_.slots()) {
    slot.facts.chunkBodies = bodies;
  }
  return {};
}

bool PushDriver::ownsSome() const {
  const std::vector<int> all = owners();
  return parts_.owned != nullptr && std::binary_search(all.begin(), all.end(), parts_.rank.rank);
}

/// The next run is asked for once every engine has answered the one before: an engine that is ahead
/// waits for no source, and one that is behind is the only one outstanding.
void PushDriver::releaseRun() {
  auto& slots = runner_.slots();
  std::size_t done = slots.front().facts.chunkBodies->size();
  for (const EngineSlot& slot : slots) {
    done = slot.ledger.dropped ? done : std::min(done, slot.ledger.chunksDone);
  }
  for (EngineSlot& slot : slots) {
    slot.facts.chunksReady = done + 1;
  }
  runner_.release();
}

/// What the ranks are told: to keep the channel of the last push, or of a new one.
Result<std::string> PushDriver::inviteSources() {
  for (EngineSlot& slot : runner_.slots()) {
    slot.facts.initBody = nullptr;
  }
  takeChannelSlots();
  const std::vector<int> sources = owners();
  if (channelSound() && parts_.owned->hasSources(sources)) {
    return std::string(transports::OwnedStreams::kKeep);
  }
  parts_.plane->abort(Status(Code::kAborted, "the channel is built anew"));
  return parts_.owned->invite(channelSpec(), sources);
}

/// On rank 0, after an exchange.
Status PushDriver::takeAnswers(const CallerResult& result) {
  if (result.invitation.empty() || result.invitation == transports::OwnedStreams::kOpen) {
    return {};
  }
  if (result.invitation == transports::OwnedStreams::kKeep) {
    return parts_.owned->soundness(result.answers);
  }
  Result<std::vector<std::string>> bodies = parts_.owned->initInfos(result.answers);
  if (!bodies.ok()) {
    return bodies.status();
  }
  takeInitBodies(std::move(*bodies));
  return {};
}

/// All ranks take part in the exchange, since only rank 0 knows whether a channel is needed.
void PushDriver::openWithSources() {
  CallerRequest request;
  request.kind = ActionKind::kChannelOpen;
  request.key = key();
  request.deadline = voteDeadline();
  request.exchange = true;
  inviteError_ = Status();
  if (state_.leader && announced_) {
    request.invitation = transports::OwnedStreams::kOpen;
  } else if (state_.leader) {
    Result<std::string> invitation = inviteSources();
    if (invitation.ok()) {
      request.invitation = std::move(*invitation);
    } else {
      inviteError_ = invitation.status();
    }
    const bool anew = request.invitation != transports::OwnedStreams::kKeep;
    for (const std::size_t i : channelSlots_) {
      runner_.slots()[i].facts.initComes = anew;
    }
  }
  call(std::move(request));
}

void PushDriver::onExchanged(const CallerResult& result) {
  Status status = result.status;
  status.merge(inviteError_);
  if (status.ok() && state_.leader) {
    status = takeAnswers(result);
  }
  for (EngineSlot& slot : runner_.slots()) {
    slot.facts.initComes = false;
  }
  if (status.ok()) {
    runner_.release();
  } else {
    runner_.endHolding(mine(status));
  }
  announced_ = false;
  const bool opens =
      !result.invitation.empty() && result.invitation != transports::OwnedStreams::kKeep;
  if (!status.ok() || !opens) {
    endOpening(status);
    return;
  }
  CallerRequest request;
  request.kind = ActionKind::kChannelOpen;
  request.deadline = capped(parts_.config.timeouts.init);
  call(std::move(request));
}

/// A failure that this rank found by itself: whoever sends in this pass, or waits for engines to
/// join, should not go on until the next vote.
void PushDriver::haltOthers(const Event& event, bool soundBefore) {
  const bool sends = state_.phase == Phase::kStream || state_.phase == Phase::kChannel;
  const bool own = event.kind != EventKind::kVerdict && event.kind != EventKind::kVoteFailed;
  if (parts_.owned == nullptr || !sends || !own || !soundBefore || state_.local.ok() ||
      haltHeard_) {
    return;
  }
  const Status reason = mine(state_.local);
  parts_.observer.onLink({LinkNews::Kind::kHalt, true, -1, reason});
  parts_.link.halt(key(), reason);
}

void PushDriver::onHalt(int rank, const VoteKey& at, const Status& reason) {
  parts_.observer.onLink({LinkNews::Kind::kHalt, false, rank, reason});
  if (at.epoch != push_.epoch || at.attempt != state_.attempt || parts_.owned == nullptr) {
    return;
  }
  Origin origin;
  origin.rank = rank;
  const Status status = reason.at(origin);
  if (state_.phase == at.phase && at.phase == Phase::kChannel) {
    parts_.caller.interruptPlane(status.prefixed("given up"));
  } else if (at.phase == Phase::kStream && state_.phase <= Phase::kStream) {
    halt_.merge(status);
    if (state_.phase == Phase::kStream) {
      deliverHalt();
    }
  }
}

/// From a posted task: the phase may be just entered.
void PushDriver::deliverHalt() {
  if (halt_.ok()) {
    return;
  }
  parts_.executor.post([this, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired() || finished_ || halt_.ok() || state_.phase != Phase::kStream) {
      return;
    }
    const Status reason = std::exchange(halt_, Status());
    if (state_.local.ok()) {
      haltHeard_ = true;
      // That an engine closed its connection there is the symptom of what it may yet answer here.
      planeFailure_ = reason.origin().engine.empty() ? planeFailure_ : reason;
    }
    feed(Event{EventKind::kEarlyReply, reason, {}});
    const Stage stage = state_.stage;
    if (!finished_ && stage != Stage::kBegin && stage != Stage::kPut && stage != Stage::kFlush) {
      // The plane is at rest. An engine that reads from this rank must not wait for what will not
      // come, and the next vote may wait for that engine's answer.
      abortChannel(reason);
    }
  });
}

}  // namespace pushrod::orchestrator
