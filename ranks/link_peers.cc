// SPDX-License-Identifier: Apache-2.0
#include "ranks/link_peers.h"

#include <algorithm>
#include <utility>

namespace pushrod::ranks {

LinkPeers::Id LinkPeers::add(std::unique_ptr<net::Stream> stream, bool above, TimePoint now) {
  const Id id = next_++;
  Peer& peer = peers_[id];
  peer.stream = std::move(stream);
  peer.above = above;
  peer.heard = now;
  return id;
}

LinkPeers::Peer* LinkPeers::find(Id id) {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : &found->second;
}

void LinkPeers::eraseAbove() {
  std::erase_if(peers_, [](const auto& each) { return each.second.above; });
}

void LinkPeers::replace(int rank, Id except) {
  std::erase_if(peers_, [rank, except](const auto& each) {
    return each.first != except && !each.second.above && each.second.rank == rank;
  });
  for (auto& [id, peer] : peers_) {
    (void)id;
    peer.known.erase(rank);
  }
}

std::optional<LinkPeers::Id> LinkPeers::above() const {
  for (const auto& [id, peer] : peers_) {
    if (peer.above && peer.rank >= 0) {
      return id;
    }
  }
  return std::nullopt;
}

bool LinkPeers::connected(int rank) const {
  return std::any_of(
      peers_.begin(), peers_.end(), [rank](const auto& each) { return each.second.rank == rank; });
}

bool LinkPeers::knows(int rank) const {
  return std::any_of(peers_.begin(), peers_.end(), [rank](const auto& each) {
    return each.second.known.count(rank) > 0;
  });
}

std::size_t LinkPeers::greeted() const {
  return static_cast<std::size_t>(std::count_if(
      peers_.begin(), peers_.end(), [](const auto& each) { return each.second.rank >= 0; }));
}

std::size_t LinkPeers::strangers() const {
  return peers_.size() - greeted();
}

std::vector<LinkPeers::Id> LinkPeers::silent(TimePoint now, Duration limit) const {
  std::vector<Id> ids;
  for (const auto& [id, peer] : peers_) {
    if (now - peer.heard > limit) {
      ids.push_back(id);
    }
  }
  return ids;
}

void LinkPeers::forgiveSilence(TimePoint now) {
  for (auto& [id, peer] : peers_) {
    (void)id;
    peer.heard = now;
  }
}

std::vector<int> LinkPeers::note(Peer& peer,
                                 const std::vector<RankPosition>& positions,
                                 TimePoint now) {
  std::vector<int> fresh;
  for (const RankPosition& each : positions) {
    const Known known{
        each.key, now - each.age, now - each.silence, each.progress, now - each.still};
    if (peer.known.insert_or_assign(each.rank, known).second) {
      fresh.push_back(each.rank);
    }
  }
  return fresh;
}

std::vector<RankPosition> LinkPeers::positions(bool above, TimePoint now) const {
  std::map<int, Known> all;
  for (const auto& [id, peer] : peers_) {
    (void)id;
    if (peer.above != above) {
      continue;
    }
    for (const auto& [rank, known] : peer.known) {
      // A rank that changed its place may be told of twice for a moment.
      const auto [at, fresh] = all.try_emplace(rank, known);
      if (!fresh && known.heard > at->second.heard) {
        at->second = known;
      }
    }
  }
  std::vector<RankPosition> list;
  list.reserve(all.size());
  for (const auto& [rank, known] : all) {
    list.push_back({rank,
                    known.key,
                    std::chrono::duration_cast<Duration>(now - known.since),
                    std::chrono::duration_cast<Duration>(now - known.heard),
                    known.progress,
                    std::chrono::duration_cast<Duration>(now - known.still)});
  }
  return list;
}

void LinkPeers::sendToAll(const LinkFrame& frame, std::optional<Id> except) {
  const std::string bytes = encode(frame);
  for (const auto& [id, peer] : peers_) {
    if (peer.rank >= 0 && id != except) {
      peer.stream->write(bytes);
    }
  }
}

void LinkPeers::sendBelow(const LinkFrame& frame) {
  const std::string bytes = encode(frame);
  for (const auto& [id, peer] : peers_) {
    (void)id;
    if (peer.rank >= 0 && !peer.above) {
      peer.stream->write(bytes);
    }
  }
}

}  // namespace pushrod::ranks
