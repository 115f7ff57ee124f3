// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include <pushrod/tensor.h>

#include "orchestrator/flight/event.h"
#include "orchestrator/flight/lines.h"

namespace pushrod::orchestrator {

/// The last events of one push on one rank, and the push table's state before the first of them, so
/// that what is left can be replayed. Bounded: kMaxEvents events (below 1.5 MiB) and kMaxTexts
/// bytes of their texts. Tensors are kept by index; their names come from the manifest as it is
/// written.
class FlightRing {
 public:
  static constexpr std::size_t kMaxEvents = 2048;
  static constexpr std::size_t kMaxTexts = std::size_t{512} << 10;

  /// A push begins with `base`.
  void reset(PushState base);
  void add(FlightEvent event);

  [[nodiscard]] const std::deque<FlightEvent>& events() const { return events_; }

  [[nodiscard]] const PushState& base() const { return base_; }

  /// Events that had to make room.
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

  /// The state and the newest events as lines of a record, at most `budget` bytes unless the state
  /// is longer by itself.
  [[nodiscard]] std::string encode(int rank,
                                   const FlightManifests& manifests,
                                   std::size_t budget) const;

 private:
  PushState base_;
  std::deque<FlightEvent> events_;
  std::size_t texts_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace pushrod::orchestrator
