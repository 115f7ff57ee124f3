// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pushrod/deadline.h>

#include "orchestrator/ledger/ledger.h"

namespace pushrod::orchestrator {

/// The next thing to do for one engine.
struct Next {
  enum class Kind : std::uint8_t {
    kCall,     ///< send `call`
    kReached,  ///< the goal is reached
    kFailed,   ///< it cannot be reached, because of `status`
    kWait,     ///< ask again after `pause`, then send `call`
    kHold,     ///< nothing to do until the facts change
  };
  Kind kind = Kind::kReached;
  Call call;
  Status status;  ///< kWait: why the goal is not reached, should its limit pass; ok: not said
  Duration pause = Duration::zero();
};

/// Pure: what to ask next so that this engine gets to `goal`. `last` is the reply to the previous
/// call of the same goal, null at first: a failed call ends a goal here unless reads can resolve
/// it.
[[nodiscard]] Next nextCall(const Ledger& ledger,
                            Goal goal,
                            const PushFacts& facts,
                            const Reply* last);

}  // namespace pushrod::orchestrator
