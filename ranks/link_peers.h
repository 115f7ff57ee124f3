// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pushrod/deadline.h>

#include "net/stream.h"
#include "ranks/link_frame.h"

namespace pushrod::ranks {

/// The connections of a link and what is known of the ranks behind them. A plain table of the
/// control thread.
class LinkPeers {
 public:
  using Id = std::uint64_t;

  /// A rank's position with its times on our clock.
  struct Known {
    VoteKey key;
    TimePoint since;
    TimePoint heard;
    RankProgress progress = {};
    TimePoint still = {};
  };

  struct Peer {
    std::unique_ptr<net::Stream> stream;
    std::string input;
    bool above = false;  ///< we connected to it; else it to us
    int rank = -1;       ///< -1: not yet greeted
    TimePoint heard;
    /// Below us: the rank and those that it relays for. Above: the rank and its own way to rank 0.
    std::map<int, Known> known;
  };

  Id add(std::unique_ptr<net::Stream> stream, bool above, TimePoint now);
  /// Null when it is gone.
  Peer* find(Id id);

  void erase(Id id) { peers_.erase(id); }

  /// Closes the connections upwards.
  void eraseAbove();
  /// Closes a rank's connections but `except`, and forgets who told of it.
  void replace(int rank, Id except);

  /// The greeted connection upwards.
  [[nodiscard]] std::optional<Id> above() const;
  /// A connection of the rank's own.
  [[nodiscard]] bool connected(int rank) const;
  /// The rank is connected here or through others.
  [[nodiscard]] bool knows(int rank) const;
  [[nodiscard]] std::size_t strangers() const;
  [[nodiscard]] std::size_t greeted() const;
  /// Connections that have said nothing for longer than `limit`.
  [[nodiscard]] std::vector<Id> silent(TimePoint now, Duration limit) const;
  /// This process did not run: the silence was ours.
  void forgiveSilence(TimePoint now);

  /// Keeps what a beat told; returns the ranks not known before by that connection.
  static std::vector<int> note(Peer& peer,
                               const std::vector<RankPosition>& positions,
                               TimePoint now);
  /// What is known through the connections below us or, with `above`, the one above, by rank.
  [[nodiscard]] std::vector<RankPosition> positions(bool above, TimePoint now) const;

  /// To every greeted connection but `except`.
  void sendToAll(const LinkFrame& frame, std::optional<Id> except);
  void sendBelow(const LinkFrame& frame);

 private:
  std::map<Id, Peer> peers_;
  Id next_ = 0;
};

}  // namespace pushrod::ranks
