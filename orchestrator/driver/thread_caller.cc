// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/driver/thread_caller.h"

#include <chrono>
#include <exception>
#include <utility>

#include "orchestrator/plan.h"

namespace pushrod::orchestrator {

namespace {

/// A trainer's exception stays inside its own call: it becomes the rank's failure.
Status thrown(const char* where, const std::exception& error) {
  return Status(Code::kInternal,
                std::string("the weight source threw in ") + where + ": " + error.what());
}

CallerResult resultOf(Status status) {
  CallerResult result;
  result.status = std::move(status);
  return result;
}

}  // namespace

void ThreadCaller::run() {
  for (;;) {
    std::optional<Job> job;
    {
      std::unique_lock lock(mutex_);
      // Woken by perform or stop; the period only bounds a lost wake-up.
      while (!job_ && !stopped_) {
        changed_.wait_for(lock, std::chrono::seconds(1));
      }
      if (stopped_) {
        return;
      }
      job = std::move(job_);
      job_.reset();
    }
    CallerResult result = work(job->request);
    parts_.executor.post([done = std::move(job->done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  }
}

void ThreadCaller::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

void ThreadCaller::perform(CallerRequest request, Done done) {
  epoch_ = request.key.epoch;
  const bool either = request.hook != nullptr || request.kind == ActionKind::kSourceManifest;
  inTarget_ = either || !request.draft;
  inDraft_ = parts_.draft != nullptr && (either || request.draft);
  const std::lock_guard lock(mutex_);
  job_.emplace(Job{std::move(request), std::move(done)});
  changed_.notify_all();
}

bool ThreadCaller::abortSource() {
  const bool target = !inTarget_ || parts_.source.abort();
  const bool draft = !inDraft_ || parts_.draft->abort();
  return target && draft;
}

WeightSource& ThreadCaller::sourceOf(const CallerRequest& request) const {
  return request.draft && parts_.draft != nullptr ? *parts_.draft : parts_.source;
}

void ThreadCaller::interruptPlane(const Status& reason) {
  if (parts_.plane != nullptr) {
    parts_.plane->interrupt(reason);
  }
}

void ThreadCaller::interruptVote(const Status& reason) {
  parts_.agreement.interrupt(epoch_, reason);
}

CallerResult ThreadCaller::runHook(const CallerRequest& request) {
  try {
    return resultOf(request.hook());
  } catch (const std::exception& error) {
    return resultOf(
        Status(Code::kInternal, std::string("the observer of phases threw: ") + error.what()));
  }
}

CallerResult ThreadCaller::work(const CallerRequest& request) {
  if (request.hook) {
    return runHook(request);
  }
  CallerResult result;
  switch (request.kind) {
    case ActionKind::kMeet:
      result.status = parts_.agreement.open(request.key.epoch, request.deadline);
      return result;
    case ActionKind::kVote: {
      Result<Verdict> verdict =
          parts_.agreement.vote(request.key, request.ballot, request.deadline);
      if (!verdict.ok()) {
        return resultOf(verdict.status());
      }
      result.verdict = std::move(*verdict);
      return result;
    }
    case ActionKind::kShare:
    case ActionKind::kPrepare:
      return share(request);
    case ActionKind::kSourceManifest:
      return sourceManifest();
    case ActionKind::kSourceBegin:
      return sourceBegin(request);
    case ActionKind::kSourceNext:
      return sourceNext(request);
    case ActionKind::kSourceRecover:
      return sourceRecover(request);
    case ActionKind::kChannelOpen:
      result.status =
          request.exchange ? exchange(request, result) : parts_.plane->open(request.deadline);
      return result;
    case ActionKind::kPlanePut:
      return planePut(request);
    case ActionKind::kPlaneFlush:
      return planeFlush(request);
    case ActionKind::kStartGoal:
    case ActionKind::kCancelGoal:
    case ActionKind::kChannelAbort:
    case ActionKind::kSourceAbort:
    case ActionKind::kPlaneInterrupt:
    case ActionKind::kVoteInterrupt:
    case ActionKind::kStopPeers:
    case ActionKind::kArmDrain:
    case ActionKind::kFinish:
      break;
  }
  return resultOf(
      Status(Code::kInternal, std::string(actionName(request.kind)) + " is no caller operation"));
}

CallerResult ThreadCaller::share(const CallerRequest& request) {
  Result<std::string> bytes = parts_.agreement.share(request.key, request.bytes, request.deadline);
  if (!bytes.ok()) {
    return resultOf(bytes.status());
  }
  CallerResult result;
  result.bytes = std::move(*bytes);
  if (request.kind == ActionKind::kPrepare) {
    result.prepared = prepareChunks(request, result.bytes);
    result.status = request.exchange ? exchange(request, result) : Status();
  }
  return result;
}

/// A failure of this rank's own goes to rank 0 with its answer.
Status ThreadCaller::exchange(const CallerRequest& request, CallerResult& result) {
  result.exchange = true;
  // Two collectives of their own: their steps are no step of the push.
  constexpr std::uint32_t kInviting = std::uint32_t{1} << 30U;
  constexpr std::uint32_t kAnswering = std::uint32_t{1} << 31U;
  VoteKey key = request.key;
  key.step = request.key.step | kInviting;
  Result<std::string> text = parts_.agreement.share(key, request.invitation, request.deadline);
  if (!text.ok()) {
    return text.status();
  }
  result.invitation = std::move(*text);
  key.step = request.key.step | kAnswering;
  Result<std::vector<std::string>> answers =
      parts_.agreement.collect(key, parts_.owned->join(result.invitation), request.deadline);
  if (!answers.ok()) {
    return answers.status();
  }
  result.answers = std::move(*answers);
  return {};
}

/// Here and not on the control thread: allocating large memory takes a while.
Status ThreadCaller::prepareChunks(const CallerRequest& request, const std::string& text) {
  const Result<Plan> plan =
      Plan::decode(text,
                   request.manifest->tensors.size(),
                   request.draftManifest == nullptr ? 0 : request.draftManifest->tensors.size());
  if (!plan.ok() || !plan->packs(parts_.rank)) {
    // A plan that is none is told by the driver.
    return {};
  }
  if (parts_.chunks == nullptr) {
    return Status(Code::kInvalidArgument,
                  "rank 0 wants this rank to pack for transport shm, which this rank's engine list "
                  "does not use; give all ranks the same engine list");
  }
  return parts_.chunks->prepare(*request.manifest, plan->segments);
}

CallerResult ThreadCaller::sourceRecover(const CallerRequest& request) {
  CallerResult result;
  try {
    if (!sourceOf(request).recover()) {
      result.status = Status(Code::kFailedPrecondition,
                             "the weight source cannot start another pass after its gather was "
                             "aborted; restart the trainer");
    }
  } catch (const std::exception& error) {
    result.status = thrown("recover()", error);
  }
  return result;
}

Result<std::shared_ptr<const Manifest>> ThreadCaller::manifestOf(WeightSource& source) {
  try {
    Result<Manifest> manifest = source.manifest();
    if (!manifest.ok()) {
      return manifest.status();
    }
    Manifest declared = transports::declareDtypes(std::move(*manifest), parts_.push.dtypes);
    if (Status valid = transports::validateManifest(declared); !valid.ok()) {
      return valid;
    }
    return std::make_shared<const Manifest>(std::move(declared));
  } catch (const std::exception& error) {
    return thrown("manifest()", error);
  }
}

CallerResult ThreadCaller::sourceManifest() {
  CallerResult result;
  Result<std::shared_ptr<const Manifest>> target = manifestOf(parts_.source);
  if (!target.ok()) {
    return resultOf(target.status());
  }
  result.manifest = std::move(*target);
  if (parts_.draft != nullptr) {
    Result<std::shared_ptr<const Manifest>> draft = manifestOf(*parts_.draft);
    if (!draft.ok()) {
      return resultOf(draft.status().prefixed("the draft model"));
    }
    result.draftManifest = std::move(*draft);
  }
  return result;
}

CallerResult ThreadCaller::sourceBegin(const CallerRequest& request) {
  CallerResult result;
  manifest_ = request.manifest;
  checker_ = std::make_unique<transports::ManifestChecker>(*manifest_, parts_.push.dtypeMismatch);
  index_ = 0;
  view_.reset();
  hasher_ = request.hashes ? std::make_unique<transports::ContentHasher>(*manifest_) : nullptr;
  // A plane that is broken already fails this rank's first send, and nobody's gather.
  planeBegun_ = parts_.plane != nullptr ? parts_.plane->begin(*manifest_) : Status();
  try {
    result.status = sourceOf(request).begin();
  } catch (const std::exception& error) {
    result.status = thrown("begin()", error);
  }
  return result;
}

CallerResult ThreadCaller::sourceNext(const CallerRequest& request) {
  CallerResult result;
  try {
    view_.reset();
    Result<std::optional<TensorView>> next = sourceOf(request).next();
    if (!next.ok()) {
      return resultOf(next.status());
    }
    if (!next->has_value()) {
      result.end = true;
      result.note = checker_->castNote();
      return result;
    }
    view_ = std::move(**next);
  } catch (const std::exception& error) {
    return resultOf(thrown("next()", error));
  }
  result.mismatch = checker_->check(index_, *view_);
  if (result.mismatch.ok()) {
    result.bytesGathered = manifest_->tensors[index_].bytes();
    result.mismatch = digestCopy(result);
  }
  ++index_;
  return result;
}

Status ThreadCaller::digestCopy(CallerResult& result) {
  if (parts_.push.checkReplicas == CheckReplicas::kOff) {
    return {};
  }
  Result<std::uint64_t> digest = copies_.of(manifest_->tensors[index_], *view_);
  result.copy = digest.ok() ? *digest : 0;
  return digest.status();
}

CallerResult ThreadCaller::planePut(const CallerRequest& request) {
  CallerResult result;
  const TensorSpec& spec = manifest_->tensors[index_ - 1];
  result.status = planeBegun_;
  if (result.status.ok()) {
    result.status = parts_.plane->put(spec, *view_, request.deadline);
  }
  if (result.status.ok() && hasher_ != nullptr) {
    // The plane's own threads send meanwhile.
    try {
      hasher_->add(spec, *view_);
    } catch (const std::exception& error) {
      // Memory: the push goes on, its content unproved.
      hasher_.reset();
    }
  }
  return result;
}

CallerResult ThreadCaller::planeFlush(const CallerRequest& request) {
  CallerResult result;
  view_.reset();
  result.status = planeBegun_.ok() ? parts_.plane->flush(request.deadline) : planeBegun_;
  if (result.status.ok() && hasher_ != nullptr) {
    result.digests = std::make_shared<const common::ContentDigests>(hasher_->finish());
  }
  hasher_.reset();
  return result;
}

}  // namespace pushrod::orchestrator
