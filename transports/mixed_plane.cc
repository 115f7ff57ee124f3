// SPDX-License-Identifier: Apache-2.0
#include "transports/mixed_plane.h"

#include <utility>

namespace pushrod::transports {

MixedPlane::MixedPlane(std::unique_ptr<DataPlane> streamed,
                       std::unique_ptr<DataPlane> chunked,
                       const ChunkUpdates& chunks)
    : streamed_(std::move(streamed)), chunked_(std::move(chunked)), chunks_(chunks) {}

Result<std::vector<std::string>> MixedPlane::announce(const ChannelSpec& spec) {
  ChannelSpec streamed{spec.epoch, {}};
  ChannelSpec chunked{spec.epoch, {}};
  parts_.clear();
  for (const PlaneEngine& engine : spec.engines) {
    const bool takes = chunks_.takes(engine.name);
    ChannelSpec& own = takes ? chunked : streamed;
    parts_.push_back({takes ? chunked_.get() : streamed_.get(), own.engines.size()});
    own.engines.push_back(engine);
  }
  streams_ = !streamed.engines.empty();
  shares_ = !chunked.engines.empty();
  std::vector<std::string> none;
  Result<std::vector<std::string>> chunkedTexts = shares_ ? chunked_->announce(chunked) : none;
  if (!chunkedTexts.ok()) {
    return chunkedTexts.status();
  }
  Result<std::vector<std::string>> streamedTexts = streams_ ? streamed_->announce(streamed) : none;
  if (!streamedTexts.ok()) {
    return streamedTexts.status();
  }
  std::vector<std::string> texts;
  for (const Part& part : parts_) {
    const auto& own = part.plane == chunked_.get() ? *chunkedTexts : *streamedTexts;
    texts.push_back(own[part.index]);
  }
  return texts;
}

bool MixedPlane::ready() const {
  return (streams_ || shares_) && (!streams_ || streamed_->ready()) &&
         (!shares_ || chunked_->ready());
}

Status MixedPlane::open(Deadline deadline) {
  const Status opened = shares_ ? chunked_->open(deadline) : Status();
  return opened.ok() && streams_ ? streamed_->open(deadline) : opened;
}

Result<std::string> MixedPlane::updateInfo(const Manifest& manifest) {
  return streamed_->updateInfo(manifest);
}

Status MixedPlane::begin(const Manifest& manifest) {
  // Both, so that an interrupt of the last pass holds in neither.
  Status status = shares_ ? chunked_->begin(manifest) : Status();
  if (streams_) {
    status.merge(streamed_->begin(manifest));
  }
  return status;
}

Status MixedPlane::put(const TensorSpec& spec, const TensorView& view, Deadline deadline) {
  // The streamed one sends on by itself while the other may wait for answers.
  const Status sent = streams_ ? streamed_->put(spec, view, deadline) : Status();
  return sent.ok() && shares_ ? chunked_->put(spec, view, deadline) : sent;
}

Status MixedPlane::flush(Deadline deadline) {
  const Status flushed = shares_ ? chunked_->flush(deadline) : Status();
  return flushed.ok() && streams_ ? streamed_->flush(deadline) : flushed;
}

void MixedPlane::interrupt(const Status& reason) noexcept {
  streamed_->interrupt(reason);
  chunked_->interrupt(reason);
}

void MixedPlane::abort(const Status& reason) noexcept {
  streamed_->abort(reason);
  chunked_->abort(reason);
}

std::uint64_t MixedPlane::bytesSent(std::size_t engine) const {
  return engine < parts_.size() ? parts_[engine].plane->bytesSent(parts_[engine].index) : 0;
}

std::uint64_t MixedPlane::bufferBytes() const {
  return streamed_->bufferBytes() + chunked_->bufferBytes();
}

std::uint64_t MixedPlane::inFlightBytes() const {
  return streamed_->inFlightBytes() + chunked_->inFlightBytes();
}

void MixedPlane::releaseBuffers() {
  streamed_->releaseBuffers();
  chunked_->releaseBuffers();
}

}  // namespace pushrod::transports
