// SPDX-License-Identifier: Apache-2.0
// How an engine's process lives and dies, and what others do to it.
#include <algorithm>

#include "tests/sim/fake_engine.h"

namespace pushrod::sim {

void FakeEngine::crash(bool forEver) {
  ++life_;
  ++restarts_;
  queue_.clear();
  serving_ = false;
  boot();
  alive_ = !forEver;
}

void FakeEngine::freeze() {
  ++life_;
  queue_.clear();
  serving_ = false;
  streaming_ = false;
  reading_ = false;
  frozen_ = true;
}

void FakeEngine::stall(Duration time) {
  stalledUntil_ = std::max(stalledUntil_, executor_.now() + time);
  // So that whoever looks after every event looks when it goes on.
  executor_.postAt(stalledUntil_, [] {});
}

void FakeEngine::resumeByOther() {
  ++pauses_;
  paused_ = false;
  surprised_ = true;
}

void FakeEngine::heal() {
  if (!alive_ || frozen_ || lag_ > kMostLag) {
    crash(false);
  }
  stalledUntil_ = TimePoint();
  asleep_ = false;
  cacheAsleep_ = false;
}

void FakeEngine::boot() {
  frozen_ = false;
  asleep_ = false;
  cacheAsleep_ = false;
  lag_ = 0;
  ++pauses_;
  session_ = false;
  paused_ = false;
  label_ = "default";
  channel_ = 0;
  opened_.clear();
  channelReady_ = false;
  streaming_ = false;
  reading_ = false;
  complete_ = false;
  target_.boot();
  draftModel_.boot();
}

}  // namespace pushrod::sim
