// SPDX-License-Identifier: Apache-2.0
// The channel and the plan: what is announced, prepared, counted, given back. The data pass stands
// in plane_pass.cc.
#include "transports/shm/plane.h"

#include <algorithm>
#include <utility>

#include "common/ids.h"

namespace pushrod::transports::shm {

namespace {

/// Enough to tell the segments of all runs on a host from each other.
constexpr std::size_t kUniqueLength = 16;

}  // namespace

ShmPlane::ShmPlane(ShmOptions options) : options_(std::move(options)) {}

ShmPlane::~ShmPlane() = default;

Result<std::vector<std::string>> ShmPlane::announce(const ChannelSpec& spec) {
  if (opened_.load()) {
    return Status(Code::kInternal, "an shm channel is announced before the old one was aborted");
  }
  announced_ = spec.engines;
  return std::vector<std::string>(spec.engines.size(), "{\"protocol\": 1, \"packed\": true}");
}

bool ShmPlane::ready() const {
  return opened_.load();
}

Status ShmPlane::open(Deadline /*deadline*/) {
  // The engines open nothing towards us; their own init answers are the other half.
  opened_.store(true);
  return {};
}

Result<std::string> ShmPlane::updateInfo(const Manifest& /*manifest*/) {
  return Status(Code::kInternal, "each chunk of an shm pass has an update text of its own");
}

void ShmPlane::interrupt(const Status& reason) noexcept {
  answers_.interrupt(reason);
}

void ShmPlane::abort(const Status& /*reason*/) noexcept {
  // The segment stays: the resend writes it again, after every engine has answered for itself.
  opened_.store(false);
  const std::lock_guard lock(mutex_);
  updating_ = false;
}

bool ShmPlane::takes(const std::string& engine) const {
  return options_.takes(engine);
}

Result<ChunkPass> ShmPlane::plan(const Manifest& manifest) {
  Result<std::vector<Chunk>> chunks = chunksWithin(manifest, options_.transport.buffer);
  if (!chunks.ok()) {
    return chunks.status();
  }
  ChunkPass pass;
  {
    const std::lock_guard lock(mutex_);
    pass.unique =
        unique_.empty() ? common::toHex(common::randomId()).substr(0, kUniqueLength) : unique_;
  }
  std::vector<HostSegment> hosts;
  const std::vector<std::string> ids = options_.hostIds();
  for (std::size_t rank = 0; rank < ids.size(); ++rank) {
    const bool known = std::any_of(hosts.begin(), hosts.end(), [&](const HostSegment& host) {
      return host.hostId == ids[rank];
    });
    if (!known && !ids[rank].empty()) {
      const int packer = static_cast<int>(rank);
      hosts.push_back({ids[rank], segmentName(options_.job, pass.unique, packer)});
      pass.packers.push_back(packer);
    }
  }
  const Layout layout = Layout::of(*chunks, options_.transport.buffers);
  std::size_t first = 0;
  for (std::size_t i = 0; i < chunks->size(); ++i) {
    const Chunk& chunk = (*chunks)[i];
    pass.ends.push_back(chunk.end);
    pass.bodies.push_back(std::make_shared<const std::string>(
        chunkBody(manifest, first, chunk, hosts, layout.offset(i))));
    first = chunk.end;
  }
  return pass;
}

Status ShmPlane::prepare(const Manifest& manifest, const std::string& unique) {
  Result<std::vector<Chunk>> chunks = chunksWithin(manifest, options_.transport.buffer);
  if (!chunks.ok()) {
    return chunks.status();
  }
  const std::lock_guard lock(mutex_);
  if (unique != unique_) {
    segment_.reset();
    unique_ = unique;
  }
  chunks_ = std::move(*chunks);
  layout_ = Layout::of(chunks_, options_.transport.buffers);
  return makeSegment();
}

/// Under the mutex. One that is large enough is kept.
Status ShmPlane::makeSegment() {
  if (segment_ != nullptr && segment_->size() >= layout_.size()) {
    return {};
  }
  segment_.reset();
  Result<std::unique_ptr<Segment>> segment =
      Segment::create(segmentName(options_.job, unique_, options_.rank), layout_.size());
  if (!segment.ok()) {
    return segment.status();
  }
  segment_ = std::move(*segment);
  return {};
}

void ShmPlane::expect(const std::vector<std::string>& engines) {
  answers_.expect(engines);
}

void ShmPlane::answered(const std::string& engine, std::size_t chunks) {
  answers_.answered(engine, chunks);
}

/// Under the mutex.
std::uint64_t ShmPlane::bytesBefore(std::size_t chunk) const {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < std::min(chunk, chunks_.size()); ++i) {
    total += chunks_[i].bytes;
  }
  return total;
}

std::uint64_t ShmPlane::bytesSent(std::size_t engine) const {
  if (engine >= announced_.size()) {
    return 0;
  }
  const std::size_t answered = answers_.of(announced_[engine].name);
  const std::lock_guard lock(mutex_);
  return bytesBefore(answered) * static_cast<std::uint64_t>(announced_[engine].workers);
}

std::uint64_t ShmPlane::bufferBytes() const {
  const std::lock_guard lock(mutex_);
  return segment_ == nullptr ? 0 : segment_->size();
}

std::uint64_t ShmPlane::inFlightBytes() const {
  const std::size_t answered = answers_.least();
  const std::lock_guard lock(mutex_);
  return updating_ && packed_ > answered ? bytesBefore(packed_) - bytesBefore(answered) : 0;
}

void ShmPlane::releaseBuffers() {
  const std::lock_guard lock(mutex_);
  if (!updating_) {
    segment_.reset();
  }
}

}  // namespace pushrod::transports::shm
