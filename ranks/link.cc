// SPDX-License-Identifier: Apache-2.0
#include "ranks/link.h"

#include <algorithm>
#include <utility>

namespace pushrod::ranks {

namespace {

constexpr Duration kHeartbeat{1000};
constexpr Duration::rep kBeatsPerLimit = 4;
/// Connections that have not said who they are.
constexpr std::size_t kMaxStrangers = 64;
/// Up to this many ranks all connect to rank 0.
constexpr int kMaxStar = 64;
constexpr int kTreeFanOut = 16;

std::string rankText(int rank) {
  return "rank " + std::to_string(rank);
}

}  // namespace

Link::Link(net::IoExecutor& executor, LinkOptions options)
    : executor_(executor),
      options_(options),
      fanOut_(fanOut(options.size)),
      parent_(TreePlace::of(options.rank, options.size, fanOut_).parent),
      interval_(std::max(std::min(kHeartbeat, options.agreement / kBeatsPerLimit), Duration{1})),
      positionSince_(executor.now()),
      progressSince_(executor.now()) {}

Link::~Link() {
  executor_.cancel(tickTimer_);
  executor_.cancel(joinTimer_);
}

int Link::fanOut(int size) {
  return size > kMaxStar ? kTreeFanOut : kMaxStar;
}

Status Link::listen(const std::string& address, const std::string& token) {
  auto opened =
      net::Listener::open(executor_, address, 0, [this](std::unique_ptr<net::Stream> stream) {
        // All ranks below may connect at the same moment.
        if (peers_.strangers() < kMaxStrangers + static_cast<std::size_t>(fanOut_)) {
          add(std::move(stream), false);
        }
      });
  if (!opened) {
    return opened.status().prefixed("the rank link");
  }
  server_ = std::move(*opened);
  token_ = token;
  beginTicking();
  return Status();
}

void Link::join(const LinkAddress& above,
                const LinkAddress& rankZero,
                const std::string& token,
                std::uint64_t epoch,
                Deadline deadline,
                std::function<void(const Status&)> done) {
  joinDone_ = std::move(done);
  rankZero_ = rankZero;
  token_ = token;
  epoch_ = epoch;
  orphanOf_ = -1;
  joinTimer_ = executor_.postAt(deadline.when(), [this] {
    ++attempt_;
    peers_.eraseAbove();
    finishJoin(Status(Code::kDeadlineExceeded,
                      rankText(parent_) + " did not answer on the rank link in time"));
  });
  connect(parent_, above, deadline);
}

void Link::connect(int rank, const LinkAddress& address, Deadline deadline) {
  peers_.eraseAbove();
  wanted_ = rank;
  net::Stream::connect(executor_,
                       address.address,
                       address.port,
                       deadline,
                       [this, alive = std::weak_ptr<int>(alive_), attempt = ++attempt_](
                           Result<std::unique_ptr<net::Stream>> stream) {
                         if (!alive.expired() && attempt == attempt_) {
                           onConnected(std::move(stream));
                         }
                       });
}

void Link::onConnected(Result<std::unique_ptr<net::Stream>> stream) {
  if (!stream) {
    finishJoin(stream.status().prefixed("the rank link to " + rankText(wanted_)));
    return;
  }
  const Id id = add(std::move(*stream), true);
  sendHello(*peers_.find(id));
}

void Link::finishJoin(const Status& status) {
  executor_.cancel(std::exchange(joinTimer_, 0));
  if (joinDone_) {
    std::exchange(joinDone_, nullptr)(status);
  }
}

Link::Id Link::add(std::unique_ptr<net::Stream> stream, bool above) {
  const Id id = peers_.add(std::move(stream), above, executor_.now());
  peers_.find(id)->stream->start(
      {[this, id](std::span<const std::byte> bytes) { receive(id, bytes); },
       [this, id](const Status& reason) {
         noticeOversleep();
         lose(id, reason);
       }});
  return id;
}

std::vector<int> Link::missing() const {
  std::vector<int> ranks;
  if (!isRoot()) {
    if (!peers_.above()) {
      ranks.push_back(parent_);
    }
    return ranks;
  }
  for (int rank = 1; rank < options_.size; ++rank) {
    if (!peers_.knows(rank)) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

std::vector<RankPosition> Link::positions() const {
  const TimePoint now = executor_.now();
  std::vector<RankPosition> all = peers_.positions(true, now);
  const std::vector<RankPosition> below = peers_.positions(false, now);
  all.insert(all.end(), below.begin(), below.end());
  return all;
}

void Link::setPosition(const VoteKey& position) {
  if (position.epoch != position_.epoch) {
    orphanOf_ = -1;  // another push: that rank may be back
  }
  if (position != position_) {
    position_ = position;
    positionSince_ = executor_.now();
    if (position.phase != Phase::kCheck) {
      return;
    }
    // Not inline: the caller is in the middle of a step.
    executor_.post([this, alive = std::weak_ptr<int>(alive_)] {
      if (!alive.expired()) {
        noticeAhead();
      }
    });
  }
}

void Link::noticeAhead() {
  if (listener_ == nullptr || position_.phase != Phase::kCheck || behind_ == position_.epoch) {
    return;
  }
  const std::vector<RankPosition> known = positions();
  const auto ahead = std::find_if(known.begin(), known.end(), [this](const RankPosition& each) {
    return each.key.epoch > position_.epoch;
  });
  if (ahead != known.end()) {
    behind_ = position_.epoch;
    listener_->onStop(ahead->rank,
                      position_,
                      Status(Code::kUnavailable,
                             rankText(ahead->rank) + " gave push " +
                                 std::to_string(position_.epoch) + " up and is at push " +
                                 std::to_string(ahead->key.epoch) + "; this rank meets it there"));
  }
}

void Link::lose(Id id, const Status& reason) {
  Peer* const peer = peers_.find(id);
  if (peer == nullptr) {
    return;
  }
  const int rank = peer->rank;
  const bool above = peer->above;
  const std::string address = peer->stream->peer();
  peers_.erase(id);
  if (rank < 0) {
    loseStranger(above, address, reason);
    return;
  }
  Origin origin;
  origin.rank = rank;
  const Status lost =
      Status(Code::kUnavailable, rankText(rank) + " is gone: " + reason.message()).at(origin);
  if (above) {
    orphanOf_ = rank;
    if (rank != 0) {
      connect(0, rankZero_, Deadline::after(executor_, options_.agreement));
    }
  }
  tellLost(rank, lost, std::nullopt);
}

void Link::loseStranger(bool above, const std::string& address, const Status& reason) {
  if (above) {
    finishJoin(reason.prefixed("the rank link to " + rankText(wanted_)));
    return;
  }
  if (options_.log != nullptr) {
    options_.log->log(LogLevel::kWarning,
                      "rank link: closed a connection from " + address +
                          " that is no rank of this run: " + reason.message());
  }
}

void Link::beginTicking() {
  if (tickTimer_ == 0) {
    armTick();
  }
}

void Link::armTick() {
  due_ = executor_.now() + interval_;
  tickTimer_ = executor_.postAt(due_, [this] { tick(); });
}

void Link::noticeOversleep() {
  const TimePoint now = executor_.now();
  // Counted from this rank's last beat, as the others count: one that wakes when they have just
  // given it up must not take their leaving for a failure of theirs.
  const auto silence = std::chrono::duration_cast<Duration>(now - due_) + interval_;
  if (tickTimer_ == 0 || silence <= options_.agreement) {
    return;
  }
  executor_.cancel(tickTimer_);
  armTick();
  // What the others said meanwhile is still unread: they are not the silent ones.
  peers_.forgiveSilence(now);
  if (listener_ != nullptr) {
    listener_->onOversleep(silence);
  }
}

void Link::tick() {
  noticeOversleep();
  std::vector<RankPosition> known = peers_.positions(false, executor_.now());
  known.insert(known.begin(), ownPosition());
  beatAbove(known);
  beatBelow();
  dropSilent();
  executor_.cancel(tickTimer_);
  armTick();
}

void Link::dropSilent() {
  for (const Id id : peers_.silent(executor_.now(), options_.agreement)) {
    const Peer* const peer = peers_.find(id);
    if (peer == nullptr || (peer->above && joinDone_)) {
      continue;  // a join has its own limit
    }
    lose(id,
         Status(Code::kDeadlineExceeded,
                "nothing heard from it for " + std::to_string(options_.agreement.count()) + " ms"));
  }
}

}  // namespace pushrod::ranks
