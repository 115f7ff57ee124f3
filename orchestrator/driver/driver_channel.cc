// SPDX-License-Identifier: Apache-2.0
// The data channel of rank 0. It is announced before the pause, so that an address that cannot be
// bound is found while every engine still generates, and opened when the engines are told of it.
#include <algorithm>
#include <utility>

#include "orchestrator/driver/push_driver.h"

namespace pushrod::orchestrator {

bool PushDriver::channelSound() {
  const auto& slots = runner_.slots();
  return parts_.plane->ready() &&
         std::all_of(slots.begin(), slots.end(), [](const EngineSlot& slot) {
           return slot.ledger.dropped || slot.ledger.channel == ChannelState::kReady;
         });
}

/// The channel's places, in the order of the engines that belong to it.
void PushDriver::takeChannelSlots() {
  channelSlots_.clear();
  for (std::size_t i = 0; i < runner_.slots().size(); ++i) {
    if (!runner_.slots()[i].ledger.dropped) {
      channelSlots_.push_back(i);
    }
  }
}

ChannelSpec PushDriver::channelSpec() {
  ChannelSpec spec;
  spec.epoch = push_.epoch;
  for (const std::size_t i : channelSlots_) {
    EngineSlot& slot = runner_.slots()[i];
    PlaneEngine engine;
    engine.name = slot.client->name();
    engine.url = slot.client->url();
    engine.workers = slot.ledger.identity == nullptr ? 1 : slot.ledger.identity->worldSize;
    engine.dpGroup = parts_.config.engines.list.size() > i ? parts_.config.engines.list[i].dpGroup
                                                           : std::string();
    spec.engines.push_back(std::move(engine));
    if (slot.ledger.channel == ChannelState::kReady) {
      slot.ledger.channel = ChannelState::kDead;
    }
  }
  return spec;
}

void PushDriver::takeInitBodies(std::vector<std::string> bodies) {
  for (std::size_t place = 0; place < channelSlots_.size(); ++place) {
    runner_.slots()[channelSlots_[place]].facts.initBody =
        std::make_shared<const std::string>(std::move(bodies[place]));
  }
  announced_ = true;
}

/// Does nothing where the last push's channel can be used again.
Status PushDriver::announceChannel() {
  for (EngineSlot& slot : runner_.slots()) {
    slot.facts.initBody = nullptr;
  }
  takeChannelSlots();
  if (channelSound()) {
    return Status();
  }
  parts_.plane->abort(Status(Code::kAborted, "the channel is built anew"));
  Result<std::vector<std::string>> bodies = parts_.plane->announce(channelSpec());
  if (!bodies.ok()) {
    return bodies.status();
  }
  takeInitBodies(std::move(*bodies));
  return Status();
}

void PushDriver::openChannel() {
  if (parts_.owned != nullptr) {
    openWithSources();
    return;
  }
  Status status;
  if (state_.leader && !announced_) {
    // The resend, or a channel that broke since prepare.
    status = announceChannel();
  }
  if (status.ok() && announced_) {
    announced_ = false;
    CallerRequest request;
    request.kind = ActionKind::kChannelOpen;
    request.deadline = capped(parts_.config.timeouts.init);
    call(std::move(request));
    return;
  }
  // Followers have nothing to open, nor has rank 0 where the channel is sound.
  endOpening(status);
}

void PushDriver::endOpening(const Status& status) {
  parts_.executor.post(
      [this, status = status.ok() ? status : mine(status), alive = std::weak_ptr<int>(alive_)] {
        if (!alive.expired()) {
          feed(Event{EventKind::kLocalDone, status, {}});
        }
      });
}

void PushDriver::abortChannel(const Status& reason) {
  if (parts_.plane != nullptr) {
    countBytes();
    parts_.plane->abort(reason);
    announced_ = false;
    parts_.observer.onChannel(false);
  }
  for (EngineSlot& slot : runner_.slots()) {
    if (slot.ledger.channel == ChannelState::kReady) {
      slot.ledger.channel = ChannelState::kDead;
    }
  }
  // No further chunk will be packed; those that are being read are read to their end.
  runner_.endHolding(reason);
}

/// The plane counts from the pass's begin; what is new since the last look is reported once.
void PushDriver::countBytes() {
  if (!counting_) {
    return;
  }
  std::uint64_t fresh = 0;
  for (std::size_t place = 0; place < channelSlots_.size(); ++place) {
    const std::size_t engine = channelSlots_[place];
    const std::uint64_t sent = bytesBefore_[engine] + parts_.plane->bytesSent(place);
    std::uint64_t& known = engineBytes_[engine];
    if (sent > known) {
      fresh += sent - known;
      known = sent;
    }
  }
  if (fresh > 0) {
    parts_.observer.onBytes(fresh);
  }
}

std::uint64_t PushDriver::bytesSent(std::size_t engine) const {
  if (!counting_) {
    return 0;
  }
  std::uint64_t sent = engineBytes_[engine] - bytesBefore_[engine];
  for (std::size_t place = 0; parts_.plane != nullptr && place < channelSlots_.size(); ++place) {
    if (channelSlots_[place] == engine) {
      sent = std::max(sent, parts_.plane->bytesSent(place));
    }
  }
  return sent;
}

}  // namespace pushrod::orchestrator
