// SPDX-License-Identifier: Apache-2.0
// The data pass on the caller's thread: begin, put, flush.
#include <algorithm>
#include <span>

#include "transports/pack.h"
#include "transports/put_check.h"
#include "transports/shm/plane.h"

namespace pushrod::transports::shm {

namespace {

/// Between two pieces the deadline is looked at.
constexpr std::uint64_t kPiece = std::uint64_t{8} << 20U;

}  // namespace

Status ShmPlane::begin(const Manifest& manifest) {
  answers_.clearInterrupt();
  next_ = 0;
  filled_ = 0;
  passFault_ = Status();
  casts_.store(0, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (unique_.empty()) {
    return {};
  }
  if (chunks_.empty() || chunks_.back().end != manifest.tensors.size()) {
    return {Code::kInternal, "an shm pass begins over another manifest than was prepared"};
  }
  packed_ = 0;
  updating_ = true;
  return makeSegment();
}

Status ShmPlane::put(const TensorSpec& spec, const TensorView& view, Deadline deadline) {
  if (passFault_.ok()) {
    passFault_ = putChecked(spec, view, deadline);
  }
  return passFault_;
}

Status ShmPlane::putChecked(const TensorSpec& spec, const TensorView& view, Deadline deadline) {
  const std::string what = "tensor " + std::to_string(next_) + " '" + spec.describe() + "' ";
  if (Status fault = checkPut(what, spec, view); !fault.ok()) {
    return fault;
  }
  TensorReader reader(view, spec.dtype);
  if (Status copied = copyIn(reader, what, deadline); !copied.ok()) {
    return copied;
  }
  if (reader.casting()) {
    casts_.fetch_add(1, std::memory_order_relaxed);
  }
  next_ += 1;
  return next_ == chunks_[packed_].end ? closeChunk(deadline) : Status();
}

Status ShmPlane::checkPut(const std::string& what,
                          const TensorSpec& spec,
                          const TensorView& view) const {
  {
    const std::lock_guard lock(mutex_);
    if (!updating_ || segment_ == nullptr) {
      return {Code::kInternal, what + "was put without a begun shm pass"};
    }
  }
  if (packed_ == chunks_.size()) {
    return {Code::kDataMismatch,
            what + "is extra: the pass was begun with " + std::to_string(chunks_.back().end) +
                " tensors"};
  }
  if (Status fault = checkView(what, spec, view, "shm"); !fault.ok()) {
    return fault;
  }
  if (spec.bytes() > chunks_[packed_].bytes - filled_) {
    return {Code::kInternal, what + "is not the one that the pass was begun with"};
  }
  return {};
}

Status ShmPlane::copyIn(TensorReader& reader, const std::string& what, Deadline deadline) {
  const SteadyClock clock;
  std::byte* const region = segment_->data() + layout_.offset(packed_);
  while (reader.remaining() != 0) {
    if (deadline.passed(clock)) {
      return {Code::kDeadlineExceeded, "the limit passed while " + what + "was packed"};
    }
    const std::uint64_t piece =
        std::min(reader.remaining(), std::max<std::uint64_t>(kPiece, reader.goodPiece(false)));
    filled_ += reader.read(std::span<std::byte>(region + filled_, piece));
  }
  if (reader.overflowed()) {
    return {Code::kDataMismatch,
            what +
                "holds a finite value that is infinite after the cast; declare a wider dtype "
                "(push.dtypes)"};
  }
  return {};
}

Status ShmPlane::closeChunk(Deadline deadline) {
  filled_ = 0;
  std::size_t packed = 0;
  {
    const std::lock_guard lock(mutex_);
    packed = ++packed_;
  }
  // The chunk after this one goes where the one `regions` before it stands. Waiting here, before
  // the step's vote, is what keeps the other hosts' packers from writing there too early.
  if (packed == chunks_.size() || packed < layout_.regions) {
    return {};
  }
  return answers_.await(packed - layout_.regions + 1, deadline);
}

Status ShmPlane::flush(Deadline /*deadline*/) {
  if (!passFault_.ok()) {
    return passFault_;
  }
  const std::lock_guard lock(mutex_);
  if (updating_ && packed_ != chunks_.size()) {
    return {Code::kDataMismatch,
            "the pass ends after " + std::to_string(next_) + " of " +
                std::to_string(chunks_.back().end) + " tensors"};
  }
  updating_ = false;
  return {};
}

}  // namespace pushrod::transports::shm
