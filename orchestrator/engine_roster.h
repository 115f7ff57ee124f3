// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <pushrod/config.h>
#include <pushrod/engine_client.h>

#include "orchestrator/driver/goal_runner.h"

namespace pushrod::orchestrator {

/// The engines of a job on rank 0 and what is kept of each from push to push. The list may change
/// between pushes (engines.file): an entry that stays as it was keeps its client and its ledger,
/// any other begins as one that was never seen. Control thread only.
class EngineRoster {
 public:
  using Make = std::function<Result<std::unique_ptr<EngineClient>>(const EngineConfig&)>;

  struct Change {
    bool changed = false;
    std::vector<std::string> added, removed;
  };

  /// Takes `list` for the next pushes; nothing changes when a client cannot be made.
  Result<Change> set(const std::vector<EngineConfig>& list, const Make& make);
  /// The data channel is gone, whoever was in it.
  void channelEnded();

  /// One slot for each engine, for a push of `facts`.
  [[nodiscard]] std::vector<EngineSlot> slots(const PushFacts& facts);
  /// What a push left of them; `good`: it ended well.
  void keep(std::vector<EngineSlot>& slots, bool good);

  [[nodiscard]] std::vector<std::string> names() const;

  void clear() { members_.clear(); }

 private:
  struct Member {
    EngineConfig config;
    std::unique_ptr<EngineClient> client;
    Ledger ledger;
    std::shared_ptr<const EngineIdentity> good;  ///< identity at its last good push
  };

  std::vector<Member> members_;
};

}  // namespace pushrod::orchestrator
