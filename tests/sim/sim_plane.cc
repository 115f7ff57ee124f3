// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_plane.h"

#include <algorithm>
#include <utility>

namespace pushrod::sim {

namespace {

constexpr Duration kPeriod{2};
constexpr std::uint64_t kTensorBytes = 8;

Status onlyLater() {
  return Status(Code::kInternal, "virtual time has no blocking functions");
}

}  // namespace

Result<std::vector<std::string>> SimPlane::announce(const ChannelSpec& spec) {
  ++channel_;
  announced_ = true;
  open_ = false;
  gone_.reset();
  interrupted_ = Status();
  members_.clear();
  for (const PlaneEngine& member : spec.engines) {
    members_.push_back(*std::find_if(engines_.begin(), engines_.end(), [&](const auto* engine) {
      return engine->name() == member.name;
    }));
  }
  bytes_.assign(members_.size(), 0);
  return std::vector<std::string>(spec.engines.size(), std::to_string(channel_));
}

bool SimPlane::ready() const {
  return open_ && std::all_of(members_.begin(), members_.end(), [this](const FakeEngine* engine) {
           return engine->joined(channel_);
         });
}

Status SimPlane::open(Deadline) {
  return onlyLater();
}

Status SimPlane::put(const TensorSpec&, const TensorView&, Deadline) {
  return onlyLater();
}

Status SimPlane::flush(Deadline) {
  return onlyLater();
}

Result<std::string> SimPlane::updateInfo(const Manifest&) {
  return std::string("{}");
}

Status SimPlane::begin(const Manifest&) {
  interrupted_ = Status();
  bytes_.assign(members_.size(), 0);
  if (chunks_ != nullptr) {
    // Nothing is connected, and on other ranks nothing is opened.
    chunks_->begin();
    return Status();
  }
  return open_ ? Status() : Status(Code::kUnavailable, "the channel is not open");
}

Status SimPlane::gone() const {
  Origin origin;
  origin.engine = engines_[*gone_]->name();
  return Status(Code::kUnavailable, "the engine closed its connection").at(origin);
}

void SimPlane::wait(Wait wait, Deadline deadline) {
  wait_ = std::move(wait);
  ++leaving_;
  if (!interrupted_.ok()) {
    end(interrupted_);
    return;
  }
  if (gone_) {
    end(gone());
    return;
  }
  wait_->timer = executor_.postAt(deadline.when(), [this] {
    wait_->timer = 0;
    end(Status(Code::kDeadlineExceeded, "the engines did not follow in time"));
  });
  look();
}

void SimPlane::look() {
  if (wait_ && wait_->possible()) {
    wait_->act();
    end(Status());
  }
}

void SimPlane::end(const Status& status) {
  Wait wait = std::move(*wait_);
  wait_.reset();
  executor_.cancel(wait.timer);
  executor_.postAt(executor_.now() + pace_.of(kPeriod),
                   [this, done = std::move(wait.done), status] {
                     --leaving_;
                     done(status);
                   });
}

void SimPlane::openLater(Deadline deadline, Done done) {
  wait({"open",
        [this] {
          return std::all_of(members_.begin(), members_.end(), [this](const FakeEngine* engine) {
            return engine->joined(channel_);
          });
        },
        [this] {
          open_ = true;
          for (FakeEngine* engine : members_) {
            engine->channelOpen(channel_);
          }
        },
        std::move(done)},
       deadline);
}

void SimPlane::putLater(std::size_t tensor, int content, Deadline deadline, Done done) {
  if (chunks_ != nullptr) {
    chunks_->write(tensor, content);
    wait({"put", [this] { return chunks_->mayGoOn(); }, [] {}, std::move(done)}, deadline);
    return;
  }
  wait({"put",
        [this] {
          return std::all_of(members_.begin(), members_.end(), [this](const FakeEngine* engine) {
            return engine->reading(channel_);
          });
        },
        [this, tensor, content] {
          for (std::size_t i = 0; i < members_.size(); ++i) {
            bytes_[i] += kTensorBytes;
            members_[i]->receive(tensor, content);
          }
        },
        std::move(done)},
       deadline);
}

void SimPlane::flushLater(Deadline deadline, Done done) {
  wait({"flush", [] { return true; }, [] {}, std::move(done)}, deadline);
}

void SimPlane::engineGone(std::size_t engine) {
  const bool member =
      std::find(members_.begin(), members_.end(), engines_[engine]) != members_.end();
  if (!announced_ || !member || chunks_ != nullptr) {
    return;
  }
  gone_ = engine;
  if (wait_) {
    end(gone());
  }
}

void SimPlane::interrupt(const Status& reason) noexcept {
  interrupted_.merge(reason);
  if (wait_) {
    end(reason);
  }
}

void SimPlane::abort(const Status&) noexcept {
  if (keeps_) {
    return;
  }
  announced_ = false;
  open_ = false;
  for (FakeEngine* engine : members_) {
    engine->channelDied(channel_);
  }
}

}  // namespace pushrod::sim
