// SPDX-License-Identifier: Apache-2.0
// The link's share in flight records: pieces go up to rank 0, its word comes down.
#include <algorithm>

#include "ranks/link.h"

namespace pushrod::ranks {

void Link::setProgress(const RankProgress& progress) {
  if (progress.begun != progress_.begun || progress.returned != progress_.returned ||
      progress.stage != progress_.stage) {
    progressSince_ = executor_.now();
  }
  progress_ = progress;
}

void Link::tellBelow(LinkKind kind, std::uint64_t epoch) {
  if (!isRoot()) {
    return;
  }
  LinkFrame frame;
  frame.kind = kind;
  frame.rank = 0;
  frame.epoch = epoch;
  peers_.sendToAll(frame, std::nullopt);
}

void Link::askRecords(std::uint64_t epoch) {
  tellBelow(LinkKind::kRecordAsk, epoch);
}

void Link::endRecords(std::uint64_t epoch) {
  tellBelow(LinkKind::kRecordEnd, epoch);
}

void Link::sendRecord(std::uint64_t epoch, std::string_view record) {
  const auto above = peers_.above();
  if (isRoot() || !above) {
    return;
  }
  LinkFrame frame;
  frame.kind = LinkKind::kRecordPart;
  frame.rank = options_.rank;
  frame.epoch = epoch;
  do {
    const std::size_t size = std::min(record.size(), kMaxRecordPart);
    frame.part.bytes.assign(record.substr(0, size));
    record.remove_prefix(size);
    frame.part.last = record.empty();
    peers_.find(*above)->stream->write(encode(frame));
    ++frame.part.number;
  } while (!record.empty());
}

bool Link::reaches(int rank) const {
  return rank == options_.rank || (isRoot() ? peers_.knows(rank) : peers_.above().has_value());
}

bool Link::handleRecordWord(Id id, const LinkFrame& frame) {
  if (!peers_.find(id)->above) {
    return false;
  }
  peers_.sendToAll(frame, id);
  if (records_ == nullptr) {
    return true;
  }
  if (frame.kind == LinkKind::kRecordAsk) {
    records_->onRecordAsked(frame.epoch);
  } else {
    records_->onRecordEnded(frame.epoch);
  }
  return true;
}

bool Link::handleRecordPart(Id id, const LinkFrame& frame) {
  const Peer& peer = *peers_.find(id);
  if (peer.above || !speaksFor(peer, frame.rank)) {
    return false;
  }
  if (!isRoot()) {
    const auto above = peers_.above();
    if (above) {
      peers_.find(*above)->stream->write(encode(frame));
    }
  } else if (records_ != nullptr) {
    records_->onRecordPart(frame.part);
  }
  return true;
}

}  // namespace pushrod::ranks
