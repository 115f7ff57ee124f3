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

/// Does nothing where the last push's channel can be used again.
Status PushDriver::announceChannel() {
  auto& slots = runner_.slots();
  for (EngineSlot& slot : slots) {
    slot.facts.initBody = nullptr;
  }
  takeChannelSlots();
  if (channelSound()) {
    return Status();
  }
  parts_.plane->abort(Status(Code::kAborted, "the channel is built anew"));
  ChannelSpec spec;
  spec.epoch = push_.epoch;
  for (const std::size_t i : channelSlots_) {
    Ledger& ledger = slots[i].ledger;
    PlaneEngine engine;
    engine.name = slots[i].client->name();
    engine.url = slots[i].client->url();
    engine.workers = ledger.identity == nullptr ? 1 : ledger.identity->worldSize;
    engine.dpGroup = parts_.config.engines.list.size() > i ? parts_.config.engines.list[i].dpGroup
                                                           : std::string();
    spec.engines.push_back(std::move(engine));
    if (ledger.channel == ChannelState::kReady) {
      ledger.channel = ChannelState::kDead;
    }
  }
  Result<std::vector<std::string>> bodies = parts_.plane->announce(spec);
  if (!bodies.ok()) {
    return bodies.status();
  }
  for (std::size_t place = 0; place < channelSlots_.size(); ++place) {
    slots[channelSlots_[place]].facts.initBody =
        std::make_shared<const std::string>(std::move((*bodies)[place]));
  }
  announced_ = true;
  return Status();
}

void PushDriver::openChannel() {
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
  parts_.executor.post(
      [this, status = status.ok() ? status : mine(status), alive = std::weak_ptr<int>(alive_)] {
        if (!alive.expired()) {
          feed(Event{EventKind::kLocalDone, status, {}});
        }
      });
}

}  // namespace pushrod::orchestrator
