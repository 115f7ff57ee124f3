// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <pushrod/agreement.h>
#include <pushrod/tensor.h>

#include "common/content_digests.h"
#include "orchestrator/fsm/push_state.h"

namespace pushrod::orchestrator {

/// One blocking action of the push table, to be done on the trainer's thread.
struct CallerRequest {
  /// Set: run this and nothing else; its status is the result's.
  std::function<Status()> hook;
  ActionKind kind = ActionKind::kVote;
  VoteKey key;        ///< kMeet: its epoch; kVote, kShare, kPrepare
  Ballot ballot;      ///< kVote
  std::string bytes;  ///< kShare, kPrepare: what rank 0 says
  Deadline deadline = Deadline::never();
  std::shared_ptr<const Manifest> manifest;       ///< kPrepare, kSourceBegin: what will be passed
  std::shared_ptr<const Manifest> draftManifest;  ///< kPrepare: what follows it; null: nothing
  bool draft = false;                             ///< of the draft model's source
  bool hashes = false;  ///< kSourceBegin: SHA-256 of what is put, for the engines' own
  /// kPrepare, kChannelOpen, where several ranks send: rank 0's `invitation` goes to all, and what
  /// they answer comes back to it. A kChannelOpen that exchanges opens nothing yet.
  bool exchange = false;
  std::string invitation;
};

/// What became of it; `status` is ok when it was done.
struct CallerResult {
  Status status;
  Verdict verdict;                                ///< kVote
  std::string bytes;                              ///< kShare, kPrepare: rank 0's text
  std::shared_ptr<const Manifest> manifest;       ///< kSourceManifest
  std::shared_ptr<const Manifest> draftManifest;  ///< the same; null: there is no draft
  bool end = false;                               ///< kSourceNext: the pass is over
  /// kSourceNext: the tensor was gathered, but is not the one declared. `status` is ok then.
  Status mismatch;
  bool exchange = false;             ///< this was an exchange
  std::string invitation;            ///< of it: rank 0's text
  std::vector<std::string> answers;  ///< of it, on rank 0: what each rank answers
  Status prepared;                   ///< kPrepare: what this rank's own first buffers came to
  std::uint64_t bytesGathered = 0;   ///< kSourceNext
  std::string note;                  ///< kSourceNext at the end: a remark worth one warning
  std::uint64_t copy = 0;            ///< kSourceNext: digest of the tensor, with check_replicas
  std::shared_ptr<const common::ContentDigests> digests;  ///< kPlaneFlush, with `hashes`
};

/// The trainer's thread as the driver sees it: one action at a time, one completion each, in
/// production a loop inside the blocking facade, in simulation virtual time. Control thread only.
class Caller {
 public:
  using Done = std::function<void(CallerResult)>;

  Caller() = default;
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  virtual ~Caller() = default;

  /// `done` fires once, never inline.
  virtual void perform(CallerRequest request, Done done) = 0;
  /// Ends a gather in progress through WeightSource::abort(). Returns whether the source can.
  virtual bool abortSource() = 0;
  /// Ends a plane's wait.
  virtual void interruptPlane(const Status& reason) = 0;
  /// Ends a vote, a share or the meeting; agreement is dead afterwards.
  virtual void interruptVote(const Status& reason) = 0;
};

}  // namespace pushrod::orchestrator
