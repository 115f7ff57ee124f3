// SPDX-License-Identifier: Apache-2.0
// The channel: announced, opened, interrupted, aborted. The data pass stands in plane_pass.cc.
#include "transports/tcp/plane.h"

#include <algorithm>
#include <exception>

#include "transports/tcp/listener.h"
#include "transports/update_info.h"

namespace pushrod::transports::tcp {

namespace {

/// Missing workers that an error names one by one.
constexpr std::size_t kNamed = 8;

}  // namespace

TcpPlane::TcpPlane(const TransportConfig& config, Duration progress)
    : config_(config), progress_(progress), rule_(config.buffer) {
  for (int i = 0; i < std::max(1, config.buffers); ++i) {
    buffers_.push_back(std::make_unique<PackedBuffer>());
  }
}

TcpPlane::~TcpPlane() {
  abort(Status(Code::kAborted, "the trainer ended"));
}

Result<std::vector<std::string>> TcpPlane::announce(const ChannelSpec& spec) {
  Result<Roster> roster = Roster::make(spec.engines, config_.group);
  if (!roster) {
    return roster.status();
  }
  Result<std::vector<Endpoint>> announced = listen(std::move(*roster), spec.engines);
  if (!announced) {
    return announced.status();
  }
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < spec.engines.size(); ++i) {
    texts.push_back(roster_.initInfo(i, {(*announced)[i]}, config_));
  }
  return texts;
}

Result<std::vector<Endpoint>> TcpPlane::listen(Roster roster,
                                               const std::vector<PlaneEngine>& engines) {
  if (sender_ != nullptr) {
    return Status(Code::kInternal, "a tcp channel is announced before the old one was aborted");
  }
  Result<Entrance> entrance = openEntrance(engines, config_.bind, config_.port);
  if (!entrance) {
    return entrance.status();
  }
  roster_ = std::move(roster);
  monitor_.reset(roster_.slots().size());
  submitted_ = 0;
  auto sender = Sender::start(roster_, std::move(entrance->listeners), progress_, monitor_);
  if (!sender) {
    return sender.status();
  }
  sender_ = std::move(*sender);
  std::vector<Endpoint> announced;
  for (const Address& address : entrance->announced) {
    announced.push_back({address.text(), address.port()});
  }
  return announced;
}

bool TcpPlane::ready() const {
  return opened_.load(std::memory_order_acquire) && !monitor_.failed();
}

Status TcpPlane::open(Deadline deadline) {
  if (sender_ == nullptr) {
    return {Code::kInternal, "a tcp channel is opened before it was announced"};
  }
  switch (monitor_.awaitJoined(deadline)) {
    case Wait::kReached:
      opened_.store(true, std::memory_order_release);
      return {};
    case Wait::kTrouble:
      return monitor_.trouble();
    case Wait::kExpired:
      break;
  }
  const std::vector<std::size_t> missing = monitor_.missing();
  std::string names;
  for (std::size_t i = 0; i < std::min(kNamed, missing.size()); ++i) {
    names += (i == 0 ? "" : ", ") + roster_.slots()[missing[i]].label;
  }
  if (missing.size() > kNamed) {
    names += " and " + std::to_string(missing.size() - kNamed) + " more";
  }
  Origin origin;
  origin.engine = missing.empty() ? "" : roster_.slots()[missing.front()].engineName;
  return Status(Code::kDeadlineExceeded,
                std::to_string(missing.size()) + " of " + std::to_string(roster_.slots().size()) +
                    " workers did not join the tcp channel in time: " + names +
                    "; check that the engines' hosts reach transport.bind and transport.port")
      .at(origin);
}

Result<std::string> TcpPlane::updateInfo(const Manifest& manifest) {
  std::string text = "{";
  text.append(tensorLists(manifest)).append("}");
  return text;
}

void TcpPlane::interrupt(const Status& reason) noexcept {
  monitor_.interrupt(reason);
}

void TcpPlane::abort(const Status& reason) noexcept {
  if (sender_ != nullptr) {
    sender_->stop(reason);
    sender_.reset();
    // What a caller function meets after this, until the next announce.
    monitor_.fail(reason.ok() ? Status(Code::kAborted, "the tcp channel was aborted") : reason);
  }
  opened_.store(false, std::memory_order_release);
  {
    const std::lock_guard lock(bufferMutex_);
    updating_ = false;
  }
  haveBuffer_ = false;
  for (const auto& buffer : buffers_) {
    buffer->inFlightUntil(0, 0);
  }
  if (!config_.keepBuffers) {
    releaseBuffers();
  }
}

std::uint64_t TcpPlane::bytesSent(std::size_t engine) const {
  std::uint64_t total = 0;
  const std::vector<Slot>& slots = roster_.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    total += slots[i].engine == engine ? monitor_.bytes(i) : 0;
  }
  return total;
}

std::uint64_t TcpPlane::bufferBytes() const {
  std::uint64_t total = 0;
  for (const auto& buffer : buffers_) {
    total += buffer->capacity();
  }
  return total;
}

std::uint64_t TcpPlane::inFlightBytes() const {
  const std::uint64_t completed = monitor_.completedFrames();
  std::uint64_t total = 0;
  for (const auto& buffer : buffers_) {
    total += buffer->frame() > completed ? buffer->bytes() : 0;
  }
  return total;
}

void TcpPlane::releaseBuffers() {
  const std::lock_guard lock(bufferMutex_);
  if (updating_) {
    return;
  }
  for (const auto& buffer : buffers_) {
    buffer->release();
  }
}

}  // namespace pushrod::transports::tcp
