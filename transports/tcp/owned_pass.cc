// SPDX-License-Identifier: Apache-2.0
// The data pass of several sources on the caller's thread: each run is its owner's own update.
#include <algorithm>
#include <utility>

#include "transports/tcp/owned_plane.h"

namespace pushrod::transports::tcp {

Status OwnedPlane::begin(const Manifest& manifest) {
  manifest_ = manifest;
  next_ = 0;
  fault_ = Status();
  std::vector<OwnerRun> runs = ownerRuns(manifest);
  const std::lock_guard lock(mutex_);
  interrupted_ = Status();
  runs_ = std::move(runs);
  runBytes_.clear();
  for (const OwnerRun& run : runs_) {
    runBytes_.push_back(tensorsOf(manifest, run).bytes());
  }
  run_ = 0;
  running_ = false;
  casts_ = 0;
  std::fill(ownBytes_.begin(), ownBytes_.end(), 0);
  return {};
}

Status OwnedPlane::put(const TensorSpec& spec, const TensorView& view, Deadline deadline) {
  if (fault_.ok()) {
    fault_ = putInRun(spec, view, deadline);
  }
  return fault_;
}

Status OwnedPlane::putInRun(const TensorSpec& spec, const TensorView& view, Deadline deadline) {
  if (run_ >= runs_.size()) {
    return {Code::kDataMismatch,
            "tensor '" + spec.describe() + "' is extra: the update was begun with " +
                std::to_string(manifest_.tensors.size()) + " tensors"};
  }
  const OwnerRun run = runs_[run_];
  if (run.owner == rank_) {
    Status sent = next_ == run.first ? beginRun() : Status();
    if (sent.ok()) {
      sent = own_.put(spec, view, deadline);
    }
    if (!sent.ok()) {
      return sent;
    }
  } else if (view.dtype != spec.dtype) {
    const std::lock_guard lock(mutex_);
    casts_ += 1;
  }
  next_ += 1;
  // The last run ends with the pass: what is too much or too little is found before its end mark.
  return next_ == run.end && run_ + 1 < runs_.size() ? endRun(deadline) : Status();
}

Status OwnedPlane::beginRun() {
  Status begun = own_.begin(tensorsOf(manifest_, runs_[run_]));
  const std::lock_guard lock(mutex_);
  running_ = true;
  // Beginning took an interrupt away that came a moment before.
  begun.merge(interrupted_);
  return begun;
}

Status OwnedPlane::endRun(Deadline deadline) {
  if (runs_[run_].owner == rank_) {
    const Status flushed = own_.flush(deadline);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < ownBytes_.size(); ++i) {
      ownBytes_[i] += own_.bytesSent(i);
    }
    casts_ += own_.casts();
    running_ = false;
    if (!flushed.ok()) {
      return flushed;
    }
  }
  if (rank_ == 0) {
    if (Status followed = awaitAnswers(run_ + 1, deadline); !followed.ok()) {
      return followed;
    }
  }
  const std::lock_guard lock(mutex_);
  run_ += 1;
  return interrupted_;
}

Status OwnedPlane::flush(Deadline deadline) {
  if (!fault_.ok()) {
    return fault_;
  }
  if (next_ != manifest_.tensors.size()) {
    return {Code::kDataMismatch,
            "the update ends after " + std::to_string(next_) + " of " +
                std::to_string(manifest_.tensors.size()) + " tensors"};
  }
  fault_ = run_ < runs_.size() ? endRun(deadline) : Status();
  return fault_;
}

Status OwnedPlane::awaitAnswers(std::size_t runs, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto behind = [&] {
    return std::find_if(
        answers_.begin(), answers_.end(), [runs](const auto& each) { return each.second < runs; });
  };
  while (interrupted_.ok() && behind() != answers_.end()) {
    if (changed_.wait_until(lock, deadline.when()) == std::cv_status::timeout &&
        behind() != answers_.end()) {
      Origin origin;
      origin.engine = behind()->first;
      return Status(Code::kDeadlineExceeded,
                    "it has not answered update " + std::to_string(runs) + " of " +
                        std::to_string(runs_.size()) + ", which rank " +
                        std::to_string(runs_[runs - 1].owner) + " sent, within the limit",
                    Outcome::kUnknown)
          .at(origin);
    }
  }
  return interrupted_;
}

void OwnedPlane::expect(const std::vector<std::string>& engines) {
  const std::lock_guard lock(mutex_);
  answers_.clear();
  for (const std::string& engine : engines) {
    answers_[engine] = 0;
  }
}

void OwnedPlane::answered(const std::string& engine, std::size_t runs) {
  {
    const std::lock_guard lock(mutex_);
    answers_[engine] = runs;
  }
  changed_.notify_all();
}

std::uint64_t OwnedPlane::bytesSent(std::size_t engine) const {
  const std::lock_guard lock(mutex_);
  if (engine >= ownBytes_.size()) {
    return 0;
  }
  std::uint64_t total = ownBytes_[engine] + (running_ ? own_.bytesSent(engine) : 0);
  const auto answered = answers_.find(names_[engine]);
  const std::size_t done =
      answered == answers_.end() ? 0 : std::min(answered->second, runs_.size());
  for (std::size_t run = 0; run < done; ++run) {
    total += runs_[run].owner == rank_ ? 0 : runBytes_[run] * workers_[engine];
  }
  return total;
}

std::uint64_t OwnedPlane::casts() const {
  const std::lock_guard lock(mutex_);
  return casts_ + (running_ ? own_.casts() : 0);
}

}  // namespace pushrod::transports::tcp
