// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "ranks/link.h"
#include "ranks/store_frame.h"

namespace pushrod::ranks {

namespace {

/// Most ranks that one holds connections of, those that lost the rank above them included.
constexpr std::size_t kMaxConnections = 64;

bool same(const LinkFrame& a, const LinkFrame& b) {
  return a.rank == b.rank && a.key == b.key && a.status == b.status;
}

}  // namespace

void Link::receive(Id id, std::span<const std::byte> bytes) {
  noticeOversleep();
  Peer* const peer = peers_.find(id);
  if (peer == nullptr) {
    return;
  }
  peer->heard = executor_.now();
  peer->input.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // Each frame may end the connection, so it is looked up anew.
  for (Peer* at = peers_.find(id); at != nullptr; at = peers_.find(id)) {
    auto body = takeFrame(at->input, kMaxLinkFrame);
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

bool Link::handle(Id id, const LinkFrame& frame) {
  const Peer& peer = *peers_.find(id);
  const bool greeted = peer.rank >= 0;
  switch (frame.kind) {
    case LinkKind::kHello:
      return !greeted && !peer.above && handleHello(id, frame);
    case LinkKind::kWelcome:
      return !greeted && peer.above && handleWelcome(id, frame);
    case LinkKind::kBeat:
      return greeted && handleBeat(id, frame);
    case LinkKind::kStop:
      return greeted && handleStop(id, frame);
    case LinkKind::kLost:
      return greeted && handleLost(id, frame);
    case LinkKind::kVerdict:
      return greeted && handleVerdict(id, frame);
    case LinkKind::kRecordAsk:
    case LinkKind::kRecordEnd:
      return greeted && handleRecordWord(id, frame);
    case LinkKind::kRecordPart:
      return greeted && handleRecordPart(id, frame);
    case LinkKind::kHalt:
      return greeted && handleHalt(id, frame);
  }
  return false;
}

bool Link::handleHello(Id id, const LinkFrame& frame) {
  const int rank = frame.rank;
  if (frame.token != token_ || rank <= options_.rank || rank >= options_.size) {
    return false;
  }
  // Rank 0 also takes ranks that lost the one above them, while there is room.
  const int parent = TreePlace::of(rank, options_.size, fanOut_).parent;
  const bool room = isRoot() && peers_.greeted() < kMaxConnections;
  if (parent != options_.rank && !room) {
    return false;
  }
  // A rank that lost its connection comes back: the old one means nothing any more.
  peers_.replace(rank, id);
  Peer& peer = *peers_.find(id);
  peer.rank = rank;
  const TimePoint now = executor_.now();
  peer.known[rank] = {VoteKey{}, now, now};
  LinkFrame welcome;
  welcome.kind = LinkKind::kWelcome;
  welcome.rank = options_.rank;
  peer.stream->write(encode(welcome));
  if (lastStop_ && lastStop_->key.epoch == frame.epoch) {
    peer.stream->write(encode(*lastStop_));
  }
  if (lastVerdict_ && lastVerdict_->epoch == frame.epoch) {
    peer.stream->write(encode(*lastVerdict_));
  }
  // Where we are, at once: one that fell behind need not wait for a beat to know.
  peer.stream->write(encode(wordBelow()));
  announce({rank});
  return true;
}

bool Link::handleWelcome(Id id, const LinkFrame& frame) {
  if (frame.rank != wanted_) {
    return false;
  }
  Peer& peer = *peers_.find(id);
  peer.rank = frame.rank;
  beginTicking();
  std::vector<RankPosition> known = peers_.positions(false, executor_.now());
  known.insert(known.begin(), ownPosition());
  beatAbove(known);
  // What ranks below said before there was a way upwards, or while it was broken.
  if (lastStop_ && lastStop_->key.epoch == epoch_ &&
      inSubtree(lastStop_->rank, options_.rank, fanOut_)) {
    peer.stream->write(encode(*lastStop_));
  }
  finishJoin(Status());
  return true;
}

bool Link::speaksFor(const Peer& peer, int rank) const {
  if (rank < 0 || rank >= options_.size) {
    return false;
  }
  return peer.above ? rank < options_.rank && inSubtree(options_.rank, rank, fanOut_)
                    : inSubtree(rank, peer.rank, fanOut_);
}

bool Link::handleBeat(Id id, const LinkFrame& frame) {
  Peer& peer = *peers_.find(id);
  const bool allowed = std::all_of(
      frame.positions.begin(), frame.positions.end(), [&](const RankPosition& position) {
        return speaksFor(peer, position.rank);
      });
  if (!allowed) {
    return false;
  }
  const std::vector<int> fresh = LinkPeers::note(peer, frame.positions, executor_.now());
  if (!peer.above && !fresh.empty()) {
    announce(fresh);
  }
  noticeAhead();
  return true;
}

bool Link::handleStop(Id id, const LinkFrame& frame) {
  const Peer& peer = *peers_.find(id);
  if (!peer.above && !speaksFor(peer, frame.rank)) {
    return false;
  }
  if (lastStop_ && same(*lastStop_, frame)) {
    return true;  // heard before we changed our place
  }
  lastStop_ = frame;
  peers_.sendToAll(frame, id);
  if (listener_ != nullptr) {
    listener_->onStop(frame.rank, frame.key, frame.status);
  }
  return true;
}

bool Link::handleHalt(Id id, const LinkFrame& frame) {
  const Peer& peer = *peers_.find(id);
  if (!peer.above && !speaksFor(peer, frame.rank)) {
    return false;
  }
  peers_.sendToAll(frame, id);
  if (listener_ != nullptr) {
    listener_->onHalt(frame.rank, frame.key, frame.status);
  }
  return true;
}

bool Link::handleLost(Id id, const LinkFrame& frame) {
  Peer& peer = *peers_.find(id);
  const int rank = frame.rank;
  if (!peer.above) {
    if (rank == peer.rank || !speaksFor(peer, rank)) {
      return false;
    }
    std::erase_if(peer.known,
                  [&](const auto& each) { return inSubtree(each.first, rank, fanOut_); });
  }
  // Of the rank that was above we told already; one that came to us in the meantime lives.
  if (rank != options_.rank && rank != orphanOf_ && !peers_.connected(rank)) {
    tellLost(rank, frame.status, id);
  }
  return true;
}

bool Link::handleVerdict(Id id, const LinkFrame& frame) {
  if (!peers_.find(id)->above) {
    return false;
  }
  lastVerdict_ = frame;
  peers_.sendToAll(frame, id);
  if (listener_ != nullptr) {
    listener_->onVerdict(frame.epoch, frame.verdict);
  }
  return true;
}

RankPosition Link::ownPosition() const {
  const auto since = [now = executor_.now()](TimePoint when) {
    return std::chrono::duration_cast<Duration>(now - when);
  };
  return {options_.rank,
          position_,
          since(positionSince_),
          Duration{},
          progress_,
          since(progressSince_)};
}

void Link::sendHello(Peer& peer) {
  LinkFrame hello;
  hello.kind = LinkKind::kHello;
  hello.token = token_;
  hello.rank = options_.rank;
  // Connections outlive pushes: the position is of the push at hand.
  epoch_ = std::max(epoch_, position_.epoch);
  hello.epoch = epoch_;
  peer.stream->write(encode(hello));
}

void Link::announce(const std::vector<int>& ranks) {
  std::vector<RankPosition> known = peers_.positions(false, executor_.now());
  std::erase_if(known, [&ranks](const RankPosition& each) {
    return std::find(ranks.begin(), ranks.end(), each.rank) == ranks.end();
  });
  beatAbove(known);
}

void Link::beatAbove(const std::vector<RankPosition>& positions) {
  const auto above = peers_.above();
  if (!above) {
    return;
  }
  for (std::size_t begin = 0; begin < positions.size(); begin += kMaxPositions) {
    const std::size_t end = std::min(positions.size(), begin + kMaxPositions);
    LinkFrame beat;
    beat.rank = options_.rank;
    beat.positions.assign(positions.begin() + static_cast<std::ptrdiff_t>(begin),
                          positions.begin() + static_cast<std::ptrdiff_t>(end));
    peers_.find(*above)->stream->write(encode(beat));
  }
}

LinkFrame Link::wordBelow() const {
  LinkFrame beat;
  beat.rank = options_.rank;
  beat.positions = peers_.positions(true, executor_.now());
  beat.positions.push_back(ownPosition());
  return beat;
}

void Link::beatBelow() {
  peers_.sendBelow(wordBelow());
}

void Link::tellLost(int rank, const Status& reason, std::optional<Id> except) {
  LinkFrame frame;
  frame.kind = LinkKind::kLost;
  frame.rank = rank;
  frame.status = reason;
  peers_.sendToAll(frame, except);
  if (listener_ != nullptr) {
    listener_->onLost(rank, reason);
  }
  if (records_ != nullptr) {
    records_->onRankGone(rank);
  }
}

void Link::stop(const VoteKey& key, const Status& reason) {
  LinkFrame frame;
  frame.kind = LinkKind::kStop;
  frame.rank = options_.rank;
  frame.key = key;
  frame.status = reason;
  lastStop_ = frame;
  peers_.sendToAll(frame, std::nullopt);
}

void Link::halt(const VoteKey& key, const Status& reason) {
  LinkFrame frame;
  frame.kind = LinkKind::kHalt;
  frame.rank = options_.rank;
  frame.key = key;
  frame.status = reason;
  peers_.sendToAll(frame, std::nullopt);
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
  peers_.sendToAll(frame, std::nullopt);
}

}  // namespace pushrod::ranks
