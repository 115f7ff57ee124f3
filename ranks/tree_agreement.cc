// SPDX-License-Identifier: Apache-2.0
#include "ranks/tree_agreement.h"

#include <exception>
#include <utility>

#include "ranks/rendezvous.h"
#include "ranks/store.h"

namespace pushrod::ranks {

void TreeAgreement::drop() {
  std::unique_ptr<VoteTree> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped = std::move(tree_);
  }
  // Closed outside the lock: interrupt() must never wait for Gloo.
  dropped.reset();
}

Status TreeAgreement::build(Deadline deadline) {
  auto tree = VoteTree::build(rendezvous_, epoch_, interrupt_, deadline);
  const std::uint64_t former = std::exchange(lastBuild_, epoch_);
  if (former != 0 && former != epoch_) {
    // Best effort: addresses of connections that are closed.
    (void)rendezvous_.store().erase(
        {VoteTree::prefix(rendezvous_, former) + "/" + std::to_string(rendezvous_.rank().rank)},
        deadline);
  }
  if (!tree) {
    return tree.status().prefixed("connecting the ranks for push " + std::to_string(epoch_));
  }
  const std::lock_guard lock(mutex_);
  tree_ = std::move(*tree);
  return Status();
}

Status TreeAgreement::probe(Deadline deadline) {
  // Attempt 0 is no push's own: this vote can be taken for no other.
  constexpr std::uint32_t kNoAttempt = 0;
  const VoteKey key{epoch_, kNoAttempt, Phase::kIdle, 0};
  const auto verdict = tree_->probe(key, interrupt_, deadline);
  return verdict.ok() && tree_->broken()
             ? Status(Code::kUnavailable, "a connection between ranks is closed")
             : verdict.status();
}

Status TreeAgreement::open(std::uint64_t epoch, Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (interruptedEpoch_ != epoch) {
      interrupt_.clear();
    }
  }
  epoch_ = epoch;
  if (rendezvous_.rank().size == 1) {
    return Status();
  }
  Status status = hooks_.meet(epoch, interrupt_, deadline);
  if (status.ok() && tree_ != nullptr) {
    status = probe(deadline);
    if (status.code() == Code::kUnavailable && interrupt_.reason().ok()) {
      // A rank that closed its connections after the last push cannot have taken part in the
      // probe, so nobody can have finished it: all come here and connect anew.
      drop();
      status = Status();
    }
  }
  if (status.ok() && tree_ == nullptr) {
    status = build(deadline);
  }
  if (!status) {
    // The others hear of it by their connections to us.
    drop();
    if (interrupt_.reason().ok()) {
      hooks_.failed(epoch, status);
    }
  }
  return status;
}

template <typename T, typename Collective>
Result<T> TreeAgreement::run(const std::string& name, Collective collective) {
  const Status stopped = interrupt_.reason();
  if (!stopped || tree_ == nullptr) {
    drop();
    return stopped.ok() ? Status(Code::kUnavailable,
                                 name +
                                     ": the ranks are not connected, since an earlier step of "
                                     "this push failed")
                        : stopped;
  }
  Result<T> result = collective(*tree_);
  if (!result || tree_->broken()) {
    drop();
  }
  if (!result) {
    const Status reason = interrupt_.reason();
    return reason.ok() ? result.status().prefixed(name) : reason;
  }
  return result;
}

Result<Verdict> TreeAgreement::vote(const VoteKey& key, const Ballot& ballot, Deadline deadline) {
  if (rendezvous_.rank().size == 1) {
    const Status stopped = interrupt_.reason();
    return stopped.ok() ? Result<Verdict>(conclude(ballotRecord(key, ballot, 0), ballot)) : stopped;
  }
  return run<Verdict>("the vote of " + key.toString(),
                      [&](VoteTree& tree) { return tree.vote(key, ballot, interrupt_, deadline); });
}

Result<std::string> TreeAgreement::share(const VoteKey& key, std::string bytes, Deadline deadline) {
  if (rendezvous_.rank().rank == 0 && bytes.size() > VoteTree::kMaxShare) {
    drop();
    return Status(Code::kInvalidArgument,
                  "sharing " + std::to_string(bytes.size()) +
                      " bytes with all ranks, more than 64 "
                      "MiB");
  }
  if (rendezvous_.rank().size == 1) {
    const Status stopped = interrupt_.reason();
    return stopped.ok() ? Result<std::string>(std::move(bytes)) : stopped;
  }
  return run<std::string>("the exchange of " + key.toString(), [&](VoteTree& tree) {
    return tree.share(key, std::move(bytes), interrupt_, deadline);
  });
}

Result<std::vector<std::string>> TreeAgreement::collect(const VoteKey& key,
                                                        std::string bytes,
                                                        Deadline deadline) {
  if (rendezvous_.rank().size == 1) {
    const Status stopped = interrupt_.reason();
    return stopped.ok() ? Result<std::vector<std::string>>({std::move(bytes)}) : stopped;
  }
  return run<std::vector<std::string>>("the collection of " + key.toString(), [&](VoteTree& tree) {
    return tree.gather(key, bytes, rendezvous_.rank().size, interrupt_, deadline);
  });
}

void TreeAgreement::interrupt(std::uint64_t epoch, const Status& reason) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (std::exchange(interruptedEpoch_, epoch) != epoch) {
      interrupt_.clear();
    }
    interrupt_.set(reason);
    if (tree_ != nullptr) {
      tree_->abort();
    }
  } catch (const std::exception&) {
    // Out of memory: the waiter ends by its deadline.
  }
}

}  // namespace pushrod::ranks
