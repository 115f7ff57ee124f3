// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <pushrod/config.h>
#include <pushrod/data_plane.h>

#include "transports/tcp/wire.h"

namespace pushrod::transports::tcp {

/// One expected connection: a worker's place.
struct Slot {
  std::uint32_t rank = 0;  ///< in its channel
  std::size_t engine = 0;  ///< index into the spec; of a data-parallel group, the engine in turn
  std::string engineName;  ///< of a group: its name and engines
  std::string label;       ///< "engine 'rollout-0' worker 2 (rank 3)"
};

/// Where a source listens for an engine's workers.
struct Endpoint {
  std::string address;
  std::uint16_t port = 0;
};

/// Who may join: the channels, their ranks and which engine each belongs to. Engines of one
/// dp_group report the whole group's size and share one range of ranks.
class Roster {
 public:
  /// Refuses an empty list, an engine without workers and a group whose members disagree. With
  /// several `sources` each has a roster of its own, equal but for the ids, which are one's choice.
  static Result<Roster> make(const std::vector<PlaneEngine>& engines,
                             Group group,
                             std::uint32_t sources = 1);

  /// What the channels are called. Secret: never log them.
  [[nodiscard]] std::vector<common::Id> ids() const;
  /// Takes the names that another source chose; false when their number is not this roster's.
  bool setIds(const std::vector<common::Id>& ids);

  [[nodiscard]] const std::vector<Slot>& slots() const { return slots_; }

  /// The slot of a hello, or the answer that refuses it.
  [[nodiscard]] std::optional<std::size_t> find(const Hello& hello, Answer& refusal) const;

  /// The `init_info` text for engine `index`, told of all sources by ascending src. Holds the
  /// channel id: never log it.
  [[nodiscard]] std::string initInfo(std::size_t index,
                                     const std::vector<Endpoint>& sources,
                                     const TransportConfig& config) const;

 private:
  struct Channel {
    common::Id id{};
    std::uint32_t worldSize = 1;
    std::size_t firstSlot = 0;
  };

  struct Seat {
    std::size_t channel = 0;
    std::uint32_t rankOffset = 1;
  };

  void seatGroup(const std::vector<PlaneEngine>& engines, const std::vector<std::size_t>& members);

  std::uint32_t sources_ = 1;
  std::vector<Channel> channels_;
  std::vector<Seat> seats_;
  std::vector<Slot> slots_;
};

}  // namespace pushrod::transports::tcp
