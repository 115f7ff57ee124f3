// SPDX-License-Identifier: Apache-2.0
#include "ranks/link.h"

#include <algorithm>
#include <utility>

#include "ranks/store_frame.h"

namespace pushrod::ranks {

namespace {

constexpr Duration kHeartbeat{1000};
constexpr Duration::rep kBeatsPerLimit = 4;
/// Connections that have not said who they are.
constexpr std::size_t kMaxStrangers = 64;

}  // namespace

Link::Link(net::IoExecutor& executor, LinkOptions options)
    : executor_(executor),
      options_(options),
      interval_(std::max(std::min(kHeartbeat, options.agreement / kBeatsPerLimit), Duration{1})) {}

Link::~Link() {
  executor_.cancel(tickTimer_);
  executor_.cancel(joinTimer_);
}

Status Link::listen(const std::string& address, const std::string& token) {
  auto opened =
      net::Listener::open(executor_, address, 0, [this](std::unique_ptr<net::Stream> stream) {
        const auto strangers = std::count_if(connections_.begin(),
                                             connections_.end(),
                                             [](const auto& each) { return each.second.rank < 0; });
        // All ranks may connect at the same moment.
        const std::size_t allowed = kMaxStrangers + static_cast<std::size_t>(options_.size);
        if (static_cast<std::size_t>(strangers) < allowed) {
          add(std::move(stream), -1);
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

void Link::join(const std::string& address,
                std::uint16_t port,
                const std::string& token,
                std::uint64_t epoch,
                Deadline deadline,
                std::function<void(const Status&)> done) {
  joinDone_ = std::move(done);
  joinTimer_ = executor_.postAt(deadline.when(), [this] {
    for (const auto& [id, connection] : std::exchange(connections_, {})) {
      (void)id;
      connection.stream->close();
    }
    finishJoin(Status(Code::kDeadlineExceeded, "rank 0 did not answer on the rank link in time"));
  });
  net::Stream::connect(executor_,
                       address,
                       port,
                       deadline,
                       [this, alive = std::weak_ptr<int>(alive_), token, epoch](
                           Result<std::unique_ptr<net::Stream>> stream) {
                         if (!alive.expired()) {
                           onConnected(std::move(stream), token, epoch);
                         }
                       });
}

void Link::onConnected(Result<std::unique_ptr<net::Stream>> stream,
                       const std::string& token,
                       std::uint64_t epoch) {
  if (!joinDone_) {
    return;  // the limit came first
  }
  if (!stream) {
    finishJoin(stream.status().prefixed("the rank link to rank 0"));
    return;
  }
  connections_.clear();
  const std::uint64_t id = add(std::move(*stream), -1);
  LinkFrame hello;
  hello.kind = LinkKind::kHello;
  hello.token = token;
  hello.rank = options_.rank;
  hello.epoch = epoch;
  connections_.at(id).stream->write(encode(hello));
}

void Link::finishJoin(const Status& status) {
  executor_.cancel(std::exchange(joinTimer_, 0));
  if (joinDone_) {
    std::exchange(joinDone_, nullptr)(status);
  }
}

std::uint64_t Link::add(std::unique_ptr<net::Stream> stream, int rank) {
  const std::uint64_t id = nextConnection_++;
  Connection& connection = connections_[id];
  connection.stream = std::move(stream);
  connection.rank = rank;
  connection.heard = executor_.now();
  connection.stream->start({[this, id](std::span<const std::byte> bytes) { receive(id, bytes); },
                            [this, id](const Status& reason) {
                              noticeOversleep();
                              lose(id, reason);
                            }});
  return id;
}

std::vector<int> Link::missing() const {
  std::vector<int> ranks;
  const int first = isRoot() ? 1 : 0;
  const int last = isRoot() ? options_.size : 1;
  for (int rank = first; rank < last; ++rank) {
    const bool here = std::any_of(connections_.begin(),
                                  connections_.end(),
                                  [rank](const auto& each) { return each.second.rank == rank; });
    if (!here) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

std::vector<Link::RankPosition> Link::positions() const {
  std::vector<RankPosition> all;
  const TimePoint now = executor_.now();
  for (const auto& [id, connection] : connections_) {
    (void)id;
    if (connection.rank >= 0) {
      all.push_back({connection.rank,
                     connection.position,
                     std::chrono::duration_cast<Duration>(now - connection.heard)});
    }
  }
  std::sort(all.begin(), all.end(), [](const RankPosition& a, const RankPosition& b) {
    return a.rank < b.rank;
  });
  return all;
}

void Link::receive(std::uint64_t id, std::span<const std::byte> bytes) {
  noticeOversleep();
  const auto found = connections_.find(id);
  if (found == connections_.end()) {
    return;
  }
  found->second.heard = executor_.now();
  found->second.input.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // Each frame may end the connection, so it is looked up anew.
  for (auto at = connections_.find(id); at != connections_.end(); at = connections_.find(id)) {
    auto body = takeFrame(at->second.input, kMaxLinkFrame);
    if (body && !*body) {
      return;
    }
    const auto frame = body ? decodeLinkFrame(**body) : Result<LinkFrame>(body.status());
    if (!frame || !handle(id, *frame)) {
      lose(id, frame ? Status(Code::kUnavailable, "an unexpected message") : frame.status());
      return;
    }
  }
}

bool Link::handle(std::uint64_t id, const LinkFrame& frame) {
  Connection& connection = connections_.at(id);
  if (isRoot() && connection.rank < 0) {
    return frame.kind == LinkKind::kHello && handleHello(id, frame);
  }
  if (!isRoot() && connection.rank < 0) {
    if (frame.kind != LinkKind::kWelcome) {
      return false;
    }
    connection.rank = 0;
    beginTicking();
    finishJoin(Status());
    return true;
  }
  if (frame.kind == LinkKind::kBeat) {
    connection.position = frame.key;
    return true;
  }
  return isRoot() ? handleAsRoot(connection, frame) : handleAsLeaf(frame);
}

bool Link::handleHello(std::uint64_t id, const LinkFrame& frame) {
  if (frame.token != token_ || frame.rank < 1 || frame.rank >= options_.size) {
    return false;
  }
  // A rank that lost its connection comes back: the old one means nothing any more.
  std::erase_if(connections_,
                [&frame](const auto& each) { return each.second.rank == frame.rank; });
  Connection& connection = connections_.at(id);
  connection.rank = frame.rank;
  LinkFrame welcome;
  welcome.kind = LinkKind::kWelcome;
  welcome.rank = 0;
  connection.stream->write(encode(welcome));
  if (lastStop_ && lastStop_->key.epoch == frame.epoch) {
    connection.stream->write(encode(*lastStop_));
  }
  if (lastVerdict_ && lastVerdict_->epoch == frame.epoch) {
    connection.stream->write(encode(*lastVerdict_));
  }
  return true;
}

bool Link::handleAsRoot(const Connection& from, const LinkFrame& frame) {
  if (frame.kind != LinkKind::kStop || frame.rank != from.rank) {
    return false;
  }
  lastStop_ = frame;
  sendToAll(frame, frame.rank);
  if (listener_ != nullptr) {
    listener_->onStop(frame.rank, frame.key, frame.status);
  }
  return true;
}

bool Link::handleAsLeaf(const LinkFrame& frame) {
  switch (frame.kind) {
    case LinkKind::kStop:
      if (listener_ != nullptr) {
        listener_->onStop(frame.rank, frame.key, frame.status);
      }
      return true;
    case LinkKind::kLost:
      if (listener_ != nullptr) {
        listener_->onLost(frame.rank, frame.status);
      }
      return true;
    case LinkKind::kVerdict:
      if (listener_ != nullptr) {
        listener_->onVerdict(frame.epoch, frame.verdict);
      }
      return true;
    case LinkKind::kHello:
    case LinkKind::kWelcome:
    case LinkKind::kBeat:
      break;
  }
  return false;
}

void Link::lose(std::uint64_t id, const Status& reason) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) {
    return;
  }
  const int rank = found->second.rank;
  const std::string peer = found->second.stream->peer();
  connections_.erase(found);
  if (rank < 0) {
    if (isRoot()) {
      if (options_.log != nullptr) {
        options_.log->log(LogLevel::kWarning,
                          "rank link: closed a connection from " + peer +
                              " that is no rank of this run: " + reason.message());
      }
      return;
    }
    finishJoin(reason.prefixed("the rank link to rank 0"));
    return;
  }
  Origin origin;
  origin.rank = rank;
  const Status lost =
      Status(Code::kUnavailable, "rank " + std::to_string(rank) + " is gone: " + reason.message())
          .at(origin);
  if (isRoot()) {
    LinkFrame frame;
    frame.kind = LinkKind::kLost;
    frame.rank = rank;
    frame.status = lost;
    sendToAll(frame, rank);
  }
  if (listener_ != nullptr) {
    listener_->onLost(rank, lost);
  }
}

void Link::sendToAll(const LinkFrame& frame, int except) {
  const std::string bytes = encode(frame);
  for (const auto& [id, connection] : connections_) {
    (void)id;
    if (connection.rank >= 0 && connection.rank != except) {
      connection.stream->write(bytes);
    }
  }
}

void Link::stop(const VoteKey& key, const Status& reason) {
  LinkFrame frame;
  frame.kind = LinkKind::kStop;
  frame.rank = options_.rank;
  frame.key = key;
  frame.status = reason;
  if (isRoot()) {
    lastStop_ = frame;
  }
  sendToAll(frame, options_.rank);
}

void Link::publishVerdict(std::uint64_t epoch, const Verdict& verdict) {
  if (!isRoot()) {
    return;
  }
  LinkFrame frame;
  frame.kind = LinkKind::kVerdict;
  frame.rank = 0;
  frame.epoch = epoch;
  frame.verdict = verdict;
  lastVerdict_ = frame;
  sendToAll(frame, 0);
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
  for (auto& [id, connection] : connections_) {
    (void)id;
    connection.heard = now;
  }
  if (listener_ != nullptr) {
    listener_->onOversleep(silence);
  }
}

void Link::tick() {
  noticeOversleep();
  LinkFrame beat;
  beat.kind = LinkKind::kBeat;
  beat.rank = options_.rank;
  beat.key = position_;
  sendToAll(beat, options_.rank);
  dropSilent();
  executor_.cancel(tickTimer_);
  armTick();
}

void Link::dropSilent() {
  const TimePoint now = executor_.now();
  std::vector<std::uint64_t> silent;
  for (const auto& [id, connection] : connections_) {
    if (now - connection.heard > options_.agreement) {
      silent.push_back(id);
    }
  }
  for (const std::uint64_t id : silent) {
    lose(id,
         Status(Code::kDeadlineExceeded,
                "nothing heard from it for " + std::to_string(options_.agreement.count()) + " ms"));
  }
}

}  // namespace pushrod::ranks
