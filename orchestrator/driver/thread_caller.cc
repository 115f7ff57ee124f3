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
  const std::lock_guard lock(mutex_);
  job_.emplace(Job{std::move(request), std::move(done)});
  changed_.notify_all();
}

bool ThreadCaller::abortSource() {
  return parts_.source.abort();
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
      return sourceNext();
    case ActionKind::kSourceRecover:
      return sourceRecover();
    case ActionKind::kChannelOpen:
      result.status = parts_.plane->open(request.deadline);
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
  }
  return result;
}

/// Here and not on the control thread: allocating large memory takes a while.
Status ThreadCaller::prepareChunks(const CallerRequest& request, const std::string& text) {
  const Result<Plan> plan = Plan::decode(text, request.manifest->tensors.size());
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

CallerResult ThreadCaller::sourceRecover() {
  CallerResult result;
  try {
    if (!parts_.source.recover()) {
      result.status = Status(Code::kFailedPrecondition,
                             "the weight source cannot start another pass after its gather was "
                             "aborted; restart the trainer");
    }
  } catch (const std::exception& error) {
    result.status = thrown("recover()", error);
  }
  return result;
}

CallerResult ThreadCaller::sourceManifest() {
  CallerResult result;
  try {
    Result<Manifest> manifest = parts_.source.manifest();
    if (!manifest.ok()) {
      return resultOf(manifest.status());
    }
    Manifest declared = transports::declareDtypes(std::move(*manifest), parts_.push.dtypes);
    result.status = transports::validateManifest(declared);
    result.manifest = std::make_shared<const Manifest>(std::move(declared));
  } catch (const std::exception& error) {
    return resultOf(thrown("manifest()", error));
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
    result.status = parts_.source.begin();
  } catch (const std::exception& error) {
    result.status = thrown("begin()", error);
  }
  return result;
}

CallerResult ThreadCaller::sourceNext() {
  CallerResult result;
  try {
    view_.reset();
    Result<std::optional<TensorView>> next = parts_.source.next();
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
