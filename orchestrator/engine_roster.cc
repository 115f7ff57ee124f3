// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/engine_roster.h"

#include <algorithm>
#include <utility>

namespace pushrod::orchestrator {

namespace {

bool same(const EngineConfig& a, const EngineConfig& b) {
  return a.url == b.url && a.name == b.name && a.transport == b.transport &&
         a.dpGroup == b.dpGroup && a.expect.model == b.expect.model &&
         a.expect.worldSize == b.expect.worldSize &&
         a.expect.pipelineStages == b.expect.pipelineStages;
}

}  // namespace

Result<EngineRoster::Change> EngineRoster::set(const std::vector<EngineConfig>& list,
                                               const Make& make) {
  constexpr std::size_t kNew = static_cast<std::size_t>(-1);
  std::vector<std::size_t> from;
  std::vector<std::unique_ptr<EngineClient>> made(list.size());
  Change change;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto before = std::find_if(members_.begin(), members_.end(), [&](const Member& member) {
      return same(member.config, list[i]);
    });
    from.push_back(before == members_.end() ? kNew
                                            : static_cast<std::size_t>(before - members_.begin()));
    if (before == members_.end()) {
      Result<std::unique_ptr<EngineClient>> client = make(list[i]);
      if (!client.ok()) {
        return client.status();
      }
      made[i] = std::move(*client);
      change.added.push_back(list[i].name);
    }
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (std::find(from.begin(), from.end(), i) == from.end()) {
      change.removed.push_back(members_[i].config.name);
    }
    change.changed = change.changed || i >= from.size() || from[i] != i;
  }
  change.changed = change.changed || from.size() != members_.size();
  std::vector<Member> next;
  for (std::size_t i = 0; i < list.size(); ++i) {
    next.push_back(from[i] == kNew ? Member{list[i], std::move(made[i]), Ledger(), nullptr}
                                   : std::move(members_[from[i]]));
  }
  members_ = std::move(next);
  return change;
}

void EngineRoster::channelEnded() {
  for (Member& member : members_) {
    if (member.ledger.channel == ChannelState::kReady) {
      member.ledger.channel = ChannelState::kDead;
    }
  }
}

std::vector<EngineSlot> EngineRoster::slots(const PushFacts& facts) {
  std::vector<EngineSlot> list;
  for (const Member& member : members_) {
    EngineSlot slot;
    slot.client = member.client.get();
    slot.ledger = member.ledger.forNextPush();
    slot.facts = facts;
    slot.facts.engine = slot.client->name();
    slot.facts.expected = member.good;
    list.push_back(std::move(slot));
  }
  return list;
}

void EngineRoster::keep(std::vector<EngineSlot>& slots, bool good) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    member.ledger = std::move(slots[i].ledger);
    if (good && !member.ledger.dropped) {
      member.good = member.ledger.identity;
    }
  }
}

std::vector<std::string> EngineRoster::names() const {
  std::vector<std::string> list;
  for (const Member& member : members_) {
    list.push_back(member.config.name);
  }
  return list;
}

}  // namespace pushrod::orchestrator
