// SPDX-License-Identifier: Apache-2.0
// The data pass on the caller's thread: begin, put, flush.
#include <algorithm>

#include "transports/put_check.h"
#include "transports/tcp/plane.h"

namespace pushrod::transports::tcp {

Status TcpPlane::begin(const Manifest& manifest) {
  monitor_.clearInterrupt();
  if (!opened_.load(std::memory_order_acquire) || monitor_.troubled()) {
    const Status trouble = monitor_.trouble();
    return trouble.ok() ? Status(Code::kInternal, "an update begins without an open tcp channel")
                        : trouble;
  }
  {
    const std::lock_guard lock(bufferMutex_);
    if (updating_) {
      return {Code::kInternal, "a tcp update begins before the last one was flushed"};
    }
    updating_ = true;
  }
  const std::vector<std::uint64_t> chunks = chunkBytes(manifest, config_.buffer);
  largestChunk_ = chunks.empty() ? 0 : *std::max_element(chunks.begin(), chunks.end());
  rule_ = PackedRule(config_.buffer);
  declared_ = manifest.tensors.size();
  next_ = 0;
  chunk_ = 0;
  filled_ = 0;
  haveBuffer_ = false;
  passFault_ = Status();
  casts_.store(0, std::memory_order_relaxed);
  monitor_.clearBytes();
  return {};
}

Status TcpPlane::put(const TensorSpec& spec, const TensorView& view, Deadline deadline) {
  if (!passFault_.ok()) {
    return passFault_;
  }
  // A chunk that holds part of a tensor must never be sent: the pass is over after a failure.
  passFault_ = putChecked(spec, view, deadline);
  return passFault_;
}

Status TcpPlane::putChecked(const TensorSpec& spec, const TensorView& view, Deadline deadline) {
  if (monitor_.troubled()) {
    return monitor_.trouble();
  }
  if (Status fault = checkPut(spec, view); !fault.ok()) {
    return fault;
  }
  TensorReader reader(view, spec.dtype);
  const std::uint64_t bytes = reader.remaining();
  if (bytes != 0 && !haveBuffer_) {
    if (Status acquired = acquireBuffer(deadline); !acquired.ok()) {
      return acquired;
    }
  }
  if (Status copied = copyIn(reader, spec, deadline); !copied.ok()) {
    return copied;
  }
  if (reader.casting()) {
    casts_.fetch_add(1, std::memory_order_relaxed);
  }
  next_ += 1;
  if (rule_.add(bytes)) {
    closeChunk();
  }
  return {};
}

Status TcpPlane::checkPut(const TensorSpec& spec, const TensorView& view) const {
  const std::string what = "tensor " + std::to_string(next_) + " '" + spec.describe() + "' ";
  {
    const std::lock_guard lock(bufferMutex_);
    if (!updating_) {
      return {Code::kInternal, what + "was put without a begun tcp update"};
    }
  }
  if (next_ >= declared_) {
    return {Code::kDataMismatch,
            what + "is extra: the update was begun with " + std::to_string(declared_) + " tensors"};
  }
  if (Status fault = checkView(what, spec, view, "tcp"); !fault.ok()) {
    return fault;
  }
  if (filled_ + spec.bytes() > largestChunk_) {
    return {Code::kInternal, what + "is not the one that the update was begun with"};
  }
  return {};
}

Status TcpPlane::acquireBuffer(Deadline deadline) {
  PackedBuffer& buffer = currentBuffer();
  switch (monitor_.awaitCompleted(buffer.frame(), deadline)) {
    case Wait::kReached:
      break;
    case Wait::kTrouble:
      return monitor_.trouble();
    case Wait::kExpired:
      return expired("a packed buffer is free");
  }
  const std::lock_guard lock(bufferMutex_);
  if (Status reserved = buffer.reserve(largestChunk_); !reserved.ok()) {
    return reserved;
  }
  digest_.reset();
  haveBuffer_ = true;
  return {};
}

Status TcpPlane::copyIn(TensorReader& reader, const TensorSpec& spec, Deadline deadline) {
  const std::size_t piece = reader.goodPiece(config_.digest);
  while (reader.remaining() != 0) {
    if (monitor_.troubled()) {
      return monitor_.trouble();
    }
    if (deadline.passed(clock_)) {
      return expired("tensor '" + spec.describe() + "' is packed");
    }
    const std::span<std::byte> room(currentBuffer().data() + filled_,
                                    std::min<std::uint64_t>(piece, largestChunk_ - filled_));
    const std::size_t copied = reader.read(room);
    if (config_.digest) {
      // While the piece is still in the cache.
      digest_.add(room.first(copied));
    }
    filled_ += copied;
  }
  if (reader.overflowed()) {
    return {Code::kDataMismatch,
            "tensor " + std::to_string(next_) + " '" + spec.describe() +
                "' holds a finite value that is infinite after the cast; declare a wider dtype "
                "(push.dtypes)"};
  }
  return {};
}

void TcpPlane::closeChunk() {
  PackedBuffer& buffer = currentBuffer();
  const std::uint64_t digest = config_.digest ? digest_.value() : 0;
  buffer.inFlightUntil(++submitted_, filled_);
  sender_->submit({encodeHeader(FrameKind::kChunk, chunk_, filled_, digest),
                   std::span<const std::byte>(buffer.data(), filled_)});
  chunk_ += 1;
  filled_ = 0;
  haveBuffer_ = false;
}

Status TcpPlane::flush(Deadline deadline) {
  if (!passFault_.ok()) {
    return passFault_;
  }
  if (monitor_.troubled()) {
    return monitor_.trouble();
  }
  passFault_ = submitEnd(deadline);
  return passFault_;
}

Status TcpPlane::submitEnd(Deadline deadline) {
  {
    const std::lock_guard lock(bufferMutex_);
    if (!updating_) {
      return {Code::kInternal, "a tcp update is flushed that was not begun"};
    }
  }
  if (next_ != declared_) {
    return {Code::kDataMismatch,
            "the update ends after " + std::to_string(next_) + " of " + std::to_string(declared_) +
                " tensors"};
  }
  if (filled_ != 0) {
    closeChunk();
  }
  submitted_ += 1;
  sender_->submit({encodeHeader(FrameKind::kEnd, chunk_, 0, 0), {}});
  switch (monitor_.awaitCompleted(submitted_, deadline)) {
    case Wait::kReached:
      break;
    case Wait::kTrouble:
      return monitor_.trouble();
    case Wait::kExpired:
      return expired("every byte was handed over");
  }
  const std::lock_guard lock(bufferMutex_);
  updating_ = false;
  return {};
}

Status TcpPlane::expired(const std::string& what) const {
  const std::vector<Slot>& slots = roster_.slots();
  std::size_t slowest = 0;
  for (std::size_t i = 1; i < slots.size(); ++i) {
    slowest = monitor_.bytes(i) < monitor_.bytes(slowest) ? i : slowest;
  }
  Origin origin;
  origin.engine = slots[slowest].engineName;
  return Status(Code::kDeadlineExceeded,
                "the limit passed before " + what + ": " + slots[slowest].label +
                    " has taken the fewest bytes, " + std::to_string(monitor_.bytes(slowest)),
                Outcome::kUnknown)
      .at(origin);
}

}  // namespace pushrod::transports::tcp
