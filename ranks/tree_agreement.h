// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <pushrod/agreement.h>

#include "ranks/interrupt.h"
#include "ranks/vote_tree.h"

namespace pushrod::ranks {

class Rendezvous;

/// The Agreement over a VoteTree. A job of one rank needs neither tree nor store.
class TreeAgreement final : public Agreement {
 public:
  /// What open() needs from around it.
  struct Hooks {
    /// Brings the ranks together before connections are needed.
    std::function<Status(std::uint64_t epoch, Interrupt& interrupt, Deadline deadline)> meet;
    /// open() failed here by itself, not by an interrupt: the others should not wait for it.
    std::function<void(std::uint64_t epoch, const Status& status)> failed;
  };

  TreeAgreement(Rendezvous& rendezvous, Hooks hooks)
      : rendezvous_(rendezvous), hooks_(std::move(hooks)) {}

  Status open(std::uint64_t epoch, Deadline deadline) override;
  Result<Verdict> vote(const VoteKey& key, const Ballot& ballot, Deadline deadline) override;
  Result<std::string> share(const VoteKey& key, std::string bytes, Deadline deadline) override;
  Result<std::vector<std::string>> collect(const VoteKey& key,
                                           std::string bytes,
                                           Deadline deadline) override;
  void interrupt(std::uint64_t epoch, const Status& reason) noexcept override;

 private:
  Status build(Deadline deadline);
  void drop();
  /// Whether the connections of an earlier push still reach all ranks.
  Status probe(Deadline deadline);
  /// Runs one collective; drops the connections when it fails.
  template <typename T, typename Collective>
  Result<T> run(const std::string& name, Collective collective);

  Rendezvous& rendezvous_;
  Hooks hooks_;
  Interrupt interrupt_;
  std::uint64_t interruptedEpoch_ = 0;  ///< whose push interrupt_ is about; guarded by mutex_
  std::uint64_t epoch_ = 0;
  std::uint64_t lastBuild_ = 0;  ///< whose keys are in the store
  std::mutex mutex_;             ///< guards tree_ against interrupt()
  std::unique_ptr<VoteTree> tree_;
};

}  // namespace pushrod::ranks
