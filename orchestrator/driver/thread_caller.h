// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include <pushrod/config.h>
#include <pushrod/data_plane.h>
#include <pushrod/executor.h>
#include <pushrod/weight_source.h>

#include "orchestrator/driver/caller.h"
#include "transports/chunk_updates.h"
#include "transports/content_hasher.h"
#include "transports/copy_digest.h"
#include "transports/manifest_check.h"
#include "transports/owned_streams.h"

namespace pushrod::orchestrator {

struct CallerParts {
  Executor& executor;
  Agreement& agreement;
  DataPlane* plane = nullptr;  ///< null on ranks that never send
  WeightSource& source;
  WeightSource* draft = nullptr;  ///< of the draft model; null: none
  const PushConfig& push;
  int rank = 0;
  transports::ChunkUpdates* chunks = nullptr;
  transports::OwnedStreams* owned = nullptr;  ///< null: rank 0 alone sends
};

/// The caller loop of production: run() is the trainer's thread inside push(); perform() hands it
/// one action at a time and posts the answer back. All collectives of a push run on that thread.
class ThreadCaller final : public Caller {
 public:
  explicit ThreadCaller(CallerParts parts) : parts_(parts) {}

  /// The trainer's thread: works until stop(). The driver bounds every action by a deadline.
  void run();
  /// Any thread; run() returns after the action in hand.
  void stop();

  void perform(CallerRequest request, Done done) override;
  bool abortSource() override;
  void interruptPlane(const Status& reason) override;
  void interruptVote(const Status& reason) override;

 private:
  struct Job {
    CallerRequest request;
    Done done;
  };

  CallerResult work(const CallerRequest& request);
  static CallerResult runHook(const CallerRequest& request);
  [[nodiscard]] WeightSource& sourceOf(const CallerRequest& request) const;
  CallerResult sourceRecover(const CallerRequest& request);
  Result<std::shared_ptr<const Manifest>> manifestOf(WeightSource& source);
  CallerResult sourceManifest();
  CallerResult sourceBegin(const CallerRequest& request);
  CallerResult sourceNext(const CallerRequest& request);
  CallerResult share(const CallerRequest& request);
  Status prepareChunks(const CallerRequest& request, const std::string& text);
  Status digestCopy(CallerResult& result);
  Status exchange(const CallerRequest& request, CallerResult& result);
  CallerResult planePut(const CallerRequest& request);
  CallerResult planeFlush(const CallerRequest& request);

  CallerParts parts_;
  std::uint64_t epoch_ = 0;  ///< of the last request; the control thread only
  bool inTarget_ = false;    ///< the same: whether it may be in the target's source
  bool inDraft_ = false;     ///< the same of the draft's
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Job> job_;
  bool stopped_ = false;

  // The trainer's thread only.
  std::shared_ptr<const Manifest> manifest_;
  std::unique_ptr<transports::ManifestChecker> checker_;
  std::size_t index_ = 0;
  Status planeBegun_;  ///< what the plane's begin came to in this pass
  std::optional<TensorView> view_;
  transports::CopyDigest copies_;
  std::unique_ptr<transports::ContentHasher> hasher_;  ///< of passes that are proved by content
};

}  // namespace pushrod::orchestrator
