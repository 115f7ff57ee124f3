// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/roster.h"

#include "common/log.h"

namespace pushrod::transports::tcp {

namespace {

Status refused(std::string text) {
  return {Code::kInvalidArgument, "no tcp channel can be made: " + std::move(text)};
}

/// Engines that share one range of ranks, in the order of their first member.
Result<std::vector<std::vector<std::size_t>>> groupsOf(const std::vector<PlaneEngine>& engines) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < engines.size(); ++i) {
    const PlaneEngine& engine = engines[i];
    if (engine.workers < 1) {
      return refused("engine '" + engine.name + "' reports " + std::to_string(engine.workers) +
                     " workers");
    }
    std::vector<std::size_t>* mine = nullptr;
    for (auto& group : groups) {
      if (!engine.dpGroup.empty() && engines[group.front()].dpGroup == engine.dpGroup) {
        mine = &group;
      }
    }
    if (mine == nullptr) {
      groups.emplace_back().push_back(i);
      continue;
    }
    const PlaneEngine& first = engines[mine->front()];
    if (first.workers != engine.workers) {
      return refused("engines '" + first.name + "' and '" + engine.name + "' of dp_group '" +
                     engine.dpGroup + "' report different sizes, " + std::to_string(first.workers) +
                     " and " + std::to_string(engine.workers));
    }
    mine->push_back(i);
  }
  return groups;
}

std::string groupName(const std::vector<PlaneEngine>& engines,
                      const std::vector<std::size_t>& members) {
  if (members.size() == 1) {
    return engines[members.front()].name;
  }
  std::string name;
  for (const std::size_t member : members) {
    name += (name.empty() ? "" : " or ") + engines[member].name;
  }
  return name;
}

}  // namespace

Result<Roster> Roster::make(const std::vector<PlaneEngine>& engines,
                            Group group,
                            std::uint32_t sources) {
  if (engines.empty()) {
    return refused("there are no engines");
  }
  auto groups = groupsOf(engines);
  if (!groups) {
    return groups.status();
  }
  Roster roster;
  roster.sources_ = sources;
  roster.seats_.resize(engines.size());
  for (const std::vector<std::size_t>& members : *groups) {
    if (roster.channels_.empty() || group == Group::kPerEngine) {
      roster.channels_.push_back({common::randomId(), sources, roster.slots_.size()});
    }
    roster.seatGroup(engines, members);
  }
  return roster;
}

void Roster::seatGroup(const std::vector<PlaneEngine>& engines,
                       const std::vector<std::size_t>& members) {
  Channel& channel = channels_.back();
  const std::string name = groupName(engines, members);
  const auto workers = static_cast<std::size_t>(engines[members.front()].workers);
  for (const std::size_t member : members) {
    seats_[member] = {channels_.size() - 1, channel.worldSize};
  }
  for (std::size_t worker = 0; worker < workers; ++worker) {
    Slot slot;
    slot.rank = channel.worldSize++;
    // Data-parallel ranks of a group go to its engines in blocks, in the order they are listed.
    slot.engine = members[worker * members.size() / workers];
    slot.engineName = name;
    slot.label = "engine '" + name + "' worker " + std::to_string(worker) + " (rank " +
                 std::to_string(slot.rank) + ")";
    slots_.push_back(std::move(slot));
  }
}

std::vector<common::Id> Roster::ids() const {
  std::vector<common::Id> ids;
  for (const Channel& channel : channels_) {
    ids.push_back(channel.id);
  }
  return ids;
}

bool Roster::setIds(const std::vector<common::Id>& ids) {
  if (ids.size() != channels_.size()) {
    return false;
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    channels_[i].id = ids[i];
  }
  return true;
}

std::optional<std::size_t> Roster::find(const Hello& hello, Answer& refusal) const {
  refusal = Answer::kUnknownChannel;
  for (const Channel& channel : channels_) {
    if (!sameChannel(channel.id, hello.channel)) {
      continue;
    }
    if (hello.rank >= sources_ && hello.rank < channel.worldSize) {
      return channel.firstSlot + hello.rank - sources_;
    }
    refusal = Answer::kBadRank;
  }
  return std::nullopt;
}

std::string Roster::initInfo(std::size_t index,
                             const std::vector<Endpoint>& sources,
                             const TransportConfig& config) const {
  const Seat& seat = seats_[index];
  const Channel& channel = channels_[seat.channel];
  std::string list;
  for (std::size_t src = 0; src < sources.size(); ++src) {
    list += (src == 0 ? "" : ", ") + ("{\"src\": " + std::to_string(src)) +
            ", \"address\": " + common::jsonQuoted(sources[src].address) +
            ", \"port\": " + std::to_string(sources[src].port) + "}";
  }
  return "{\"protocol\": 1, \"sources\": [" + list +
         "], \"rank_offset\": " + std::to_string(seat.rankOffset) +
         ", \"world_size\": " + std::to_string(channel.worldSize) + ", \"channel\": \"" +
         common::toHex(channel.id) +
         "\", \"packed_buffer_size_bytes\": " + std::to_string(config.buffer) +
         ", \"packed_num_buffers\": " + std::to_string(config.buffers) + "}";
}

}  // namespace pushrod::transports::tcp
