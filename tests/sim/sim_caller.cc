// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_caller.h"

#include <utility>

#include "tests/sim/scenery.h"

namespace pushrod::sim {

using orchestrator::ActionKind;
using orchestrator::CallerRequest;
using orchestrator::CallerResult;

namespace {

constexpr Duration kWake{1};
constexpr Duration kPlaneStall{1500};

}  // namespace

void SimCaller::perform(CallerRequest request, Done done) {
  // The thread wakes a moment later; an abort in between meets nobody.
  world_.executor.postAt(
      world_.executor.now() + world_.pace.of(kWake, world_.slowness),
      [this, request = std::move(request), done = std::move(done)] { begin(request, done); });
}

void SimCaller::finish(const Done& done, CallerResult result) {
  world_.executor.post([done, result = std::move(result)] { done(result); });
}

void SimCaller::begin(const CallerRequest& request, const Done& done) {
  switch (request.kind) {
    case ActionKind::kMeet:
    case ActionKind::kVote:
    case ActionKind::kShare:
    case ActionKind::kPrepare:
      meet(request, done);
      return;
    case ActionKind::kSourceManifest:
    case ActionKind::kSourceBegin:
    case ActionKind::kSourceNext:
    case ActionKind::kSourceRecover:
      gather(request, done);
      return;
    default:
      if (request.exchange) {
        exchange(request, {}, done);
      } else {
        plane(request, done);
      }
      return;
  }
}

void SimCaller::meet(const CallerRequest& request, const Done& done) {
  Agreements::Part part;
  part.open = request.kind == ActionKind::kMeet;
  part.key = request.key;
  if (part.open) {
    part.key = VoteKey{request.key.epoch, 0, Phase::kIdle, 0};
  }
  part.ballot = request.ballot;
  part.bytes = request.bytes;
  const Fault fault = world_.fault(Seam::kVote, request.kind, request.key.toString());
  part.done = [this, request, done, noMemory = fault.kind == FaultKind::kNoMemory](
                  const Agreements::Result& met) {
    CallerResult result;
    result.prepared = noMemory ? Status(Code::kInternal, "no memory for its buffers") : Status();
    result.status = met.status;
    result.verdict = met.verdict;
    result.bytes = met.bytes;
    if (met.status.ok() && request.exchange) {
      exchange(request, std::move(result), done);
    } else {
      finish(done, std::move(result));
    }
  };
  if (world_.plane != nullptr && world_.plane->leaving() && request.kind == ActionKind::kVote) {
    world_.complain("promise 7: rank 0 votes before its bytes have left");
  }
  const Agreements::Trouble trouble =
      fault.kind == FaultKind::kVerdictLost ? Agreements::Trouble::kLost
      : fault.kind == FaultKind::kStaleVote ? Agreements::Trouble::kStale
                                            : Agreements::Trouble::kNone;
  if (!world_.executor.dead()) {
    world_.agreements.enter(world_.rank, std::move(part), request.deadline, trouble);
  }
}

void SimCaller::collective(const CallerRequest& request,
                           std::uint32_t step,
                           std::string bytes,
                           std::function<void(const Agreements::Result&)> done) {
  Agreements::Part part;
  part.key = request.key;
  part.key.step |= step;
  part.bytes = std::move(bytes);
  part.done = std::move(done);
  const Fault fault = world_.fault(Seam::kVote, request.kind, part.key.toString());
  if (!world_.executor.dead()) {
    world_.agreements.enter(world_.rank,
                            std::move(part),
                            request.deadline,
                            fault.kind == FaultKind::kVerdictLost ? Agreements::Trouble::kLost
                                                                  : Agreements::Trouble::kNone);
  }
}

/// As the product's caller does it: rank 0's invitation to all, then every rank's answer to rank 0.
void SimCaller::exchange(const CallerRequest& request, CallerResult result, const Done& done) {
  constexpr std::uint32_t kInviting = std::uint32_t{1} << 30U;
  constexpr std::uint32_t kAnswering = std::uint32_t{1} << 31U;
  result.exchange = true;
  const auto answered = [this, done](CallerResult told, const Agreements::Result& met) {
    told.status = met.status;
    told.answers = world_.rank == 0 ? met.said : std::vector<std::string>();
    finish(done, std::move(told));
  };
  collective(request,
             kInviting,
             request.invitation,
             [this, request, result, done, answered](const Agreements::Result& met) {
               CallerResult told = result;
               told.status = met.status;
               if (!met.status.ok()) {
                 finish(done, std::move(told));
                 return;
               }
               told.invitation = met.bytes;
               collective(
                   request,
                   kAnswering,
                   world_.owned->join(met.bytes),
                   [told, answered](const Agreements::Result& next) { answered(told, next); });
             });
}

void SimCaller::gather(const CallerRequest& request, const Done& done) {
  if (request.kind == ActionKind::kSourceBegin) {
    index_ = 0;
    pass_ = request.manifest;
    hashes_ = request.hashes;
    planeBegun_ = world_.plane != nullptr ? world_.plane->begin(*pass_) : Status();
  }
  const std::string name = std::string(actionName(request.kind)) + " " + request.key.toString() +
                           ", tensor " + std::to_string(index_);
  const FaultKind fault = world_.fault(Seam::kSource, request.kind, name).kind;
  if (world_.executor.dead()) {
    return;
  }
  const bool next = request.kind == ActionKind::kSourceNext;
  if (next && fault == FaultKind::kEndsEarly) {
    CallerResult result;
    result.end = true;
    finish(done, std::move(result));
    return;
  }
  const bool hangs = fault == FaultKind::kHangs || fault == FaultKind::kHangsDeaf;
  const Gathers::Way way = fault == FaultKind::kThrows ? Gathers::Way::kThrows
                           : hangs                     ? Gathers::Way::kHangs
                                                       : Gathers::Way::kJoins;
  // The step is no part of a gather's name: steps are ours, not the trainer's. Nor is the tensor of
  // any but the next one's: a rank that was stopped before its pass began recovers with the others.
  const std::string common =
      std::string(actionName(request.kind)) + " push " + std::to_string(request.key.epoch) +
      ", attempt " + std::to_string(request.key.attempt) +
      (next ? ", tensor " + std::to_string(index_) : "") + (request.draft ? " of the draft" : "");
  const bool other = next && fault == FaultKind::kMismatch;
  world_.gathers.enter(
      world_.rank,
      common,
      way,
      fault == FaultKind::kHangsDeaf,
      [this, done, kind = request.kind, other, fault](const Status& status) {
        CallerResult result;
        result.status = status;
        if (status.ok() && kind == ActionKind::kSourceManifest) {
          result.manifest = fault == FaultKind::kOtherManifest ? otherManifest() : world_.manifest;
          result.draftManifest = draft_;
        }
        if (status.ok() && kind == ActionKind::kSourceNext) {
          result.end = index_ == pass_->tensors.size();
          index_ += result.end ? 0 : 1;
          // All ranks gather the same values.
          result.copy = index_ + (fault == FaultKind::kOtherValues ? 1 : 0);
          if (other) {
            result.end = false;
            result.mismatch = Status(Code::kDataMismatch, "another tensor than declared");
          }
        }
        finish(done, std::move(result));
      });
}

void SimCaller::plane(const CallerRequest& request, const Done& done) {
  const std::string name(actionName(request.kind));
  const Fault fault = world_.fault(Seam::kPlane, request.kind, name);
  if (world_.executor.dead()) {
    return;
  }
  if (fault.kind == FaultKind::kPlaneStalls) {
    const Duration time = fault.lasts == Duration::zero() ? kPlaneStall : fault.lasts;
    world_.plane->stall(time);
  }
  if (fault.kind == FaultKind::kPlaneFails) {
    CallerResult result;
    result.status = Status(Code::kUnavailable, "the network failed", Outcome::kUnknown);
    finish(done, std::move(result));
    return;
  }
  carry(request, done);
}

void SimCaller::carry(const CallerRequest& request, const Done& done) {
  const auto ended = [this, done](const Status& status) {
    CallerResult result;
    result.status = status;
    finish(done, std::move(result));
  };
  if (request.kind != ActionKind::kChannelOpen && !planeBegun_.ok()) {
    ended(planeBegun_);
    return;
  }
  switch (request.kind) {
    case ActionKind::kChannelOpen:
      world_.plane->openLater(request.deadline, ended);
      return;
    case ActionKind::kPlanePut:
      world_.plane->putLater(index_ - 1, push_, request.deadline, ended);
      return;
    default:
      world_.plane->flushLater(request.deadline, [this, done](const Status& status) {
        CallerResult result;
        result.status = status;
        result.digests = status.ok() && hashes_ ? digests() : nullptr;
        finish(done, std::move(result));
      });
      return;
  }
}

/// Of what this rank put into its own stream.
std::shared_ptr<const common::ContentDigests> SimCaller::digests() const {
  common::ContentDigests sent;
  for (const TensorSpec& tensor : pass_->tensors) {
    if (tensor.owner == world_.rank) {
      sent[tensor.name] = {digestOf(push_), tensor.dtype};
    }
  }
  return std::make_shared<const common::ContentDigests>(std::move(sent));
}

}  // namespace pushrod::sim
