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
  std::vector<std::string> names;
  for (const PlaneEngine& member : spec.engines) {
    names.push_back(member.name);
  }
  join(names);
  return std::vector<std::string>(spec.engines.size(), std::to_string(channel_) + " 1");
}

void SimPlane::listen(std::uint64_t channel, int source, const std::vector<std::string>& engines) {
  channel_ = channel;
  source_ = source;
  join(engines);
}

void SimPlane::join(const std::vector<std::string>& engines) {
  announced_ = true;
  open_ = false;
  gone_.reset();
  interrupted_ = Status();
  members_.clear();
  for (const std::string& name : engines) {
    members_.push_back(*std::find_if(engines_.begin(), engines_.end(), [&](const auto* engine) {
      return engine->name() == name;
    }));
  }
  bytes_.assign(members_.size(), 0);
}

bool SimPlane::ready() const {
  return open_ && (!isSource() ||
                   std::all_of(members_.begin(), members_.end(), [this](const FakeEngine* engine) {
                     return engine->joined(channel_);
                   }));
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

Status SimPlane::begin(const Manifest& manifest) {
  interrupted_ = Status();
  bytes_.assign(members_.size(), 0);
  if (rank_) {
    runs_ = transports::ownerRuns(manifest);
    run_ = 0;
    return Status();
  }
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

void SimPlane::stall(Duration time) {
  stalledUntil_ = executor_.now() + time;
  executor_.postAt(stalledUntil_, [this] { look(); });
}

void SimPlane::look() {
  if (wait_ && executor_.now() >= stalledUntil_ && wait_->possible()) {
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
          return !isSource() ||
                 std::all_of(members_.begin(), members_.end(), [this](const FakeEngine* engine) {
                   return engine->joined(channel_);
                 });
        },
        [this] {
          open_ = true;
          for (FakeEngine* engine : members_) {
            if (isSource()) {
              engine->channelOpen(channel_, source_);
            }
          }
        },
        std::move(done)},
       deadline);
}

void SimPlane::putLater(std::size_t tensor, int content, Deadline deadline, Done done) {
  if (chunks_ != nullptr) {
    chunks_->write(tensor, content);
    wait({"put", [this] { return chunks_->mayGoOn(); }, [] {}, std::move(done)}, deadline);
  } else if (rank_) {
    putInRun(tensor, content, deadline, std::move(done));
  } else {
    send(tensor, content, deadline, std::move(done));
  }
}

void SimPlane::send(std::size_t tensor, int content, Deadline deadline, Done done) {
  wait({"put",
        [this] {
          return std::all_of(members_.begin(), members_.end(), [this](const FakeEngine* engine) {
            return engine->reading(channel_, source_);
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

void SimPlane::putInRun(std::size_t tensor, int content, Deadline deadline, Done done) {
  const transports::OwnerRun run = runs_[run_];
  // The last run ends with the pass.
  if (tensor + 1 == run.end && run_ + 1 < runs_.size()) {
    done = [this, deadline, done = std::move(done)](const Status& status) {
      if (status.ok()) {
        endRun(deadline, done);
      } else {
        done(status);
      }
    };
  }
  if (run.owner == *rank_) {
    send(tensor, content, deadline, std::move(done));
  } else {
    wait({"put", [] { return true; }, [] {}, std::move(done)}, deadline);
  }
}

/// Rank 0 waits for every engine's answer, so that no source sends while another's is read.
void SimPlane::endRun(Deadline deadline, Done done) {
  const std::size_t wanted = ++run_;
  wait({"answers",
        [this, wanted] {
          return *rank_ != 0 ||
                 std::all_of(answers_.begin(), answers_.end(), [wanted](const auto& each) {
                   return each.second >= wanted;
                 });
        },
        [] {},
        std::move(done)},
       deadline);
}

void SimPlane::expect(const std::vector<std::string>& engines) {
  answers_.clear();
  for (const std::string& engine : engines) {
    answers_[engine] = 0;
  }
}

void SimPlane::answered(const std::string& engine, std::size_t runs) {
  answers_[engine] = runs;
  look();
}

void SimPlane::flushLater(Deadline deadline, Done done) {
  if (rank_ && run_ < runs_.size()) {
    endRun(deadline, std::move(done));
    return;
  }
  wait({"flush", [] { return true; }, [] {}, std::move(done)}, deadline);
}

void SimPlane::engineGone(std::size_t engine) {
  // Before its first channel it knows no engine.
  if (!announced_ || chunks_ != nullptr || !isSource() ||
      std::find(members_.begin(), members_.end(), engines_[engine]) == members_.end()) {
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
    if (isSource()) {
      engine->channelDied(channel_, source_);
    }
  }
}

}  // namespace pushrod::sim
