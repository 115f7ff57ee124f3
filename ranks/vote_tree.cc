// SPDX-License-Identifier: Apache-2.0
#include "ranks/vote_tree.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ranks/rendezvous.h"
#include "ranks/tree_place.h"
#include "ranks/wire.h"

namespace pushrod::ranks {

namespace {

// Low bits of a slot; the epoch stands above them.
constexpr std::uint32_t kRecordSlot = 1;
constexpr std::uint32_t kChunkSlot = 2;
constexpr unsigned kSlotBits = 8;

/// Of a vote's time, at most so much is for what a rank that expired has to tell the others.
constexpr Duration kTelling{400};
constexpr int kTellingShare = 8;
constexpr int kLevels = 5;  ///< enough for 32,768 ranks

}  // namespace

std::string VoteTree::prefix(const Rendezvous& rendezvous, std::uint64_t epoch) {
  return rendezvous.key("vote/" + std::to_string(epoch));
}

Result<std::unique_ptr<VoteTree>> VoteTree::build(Rendezvous& rendezvous,
                                                  std::uint64_t epoch,
                                                  Interrupt& interrupt,
                                                  Deadline deadline) {
  const TreePlace place = TreePlace::of(rendezvous.rank().rank, rendezvous.rank().size, kFanOut);
  PairSet::Options options;
  if (place.parent >= 0) {
    options.peers.push_back(place.parent);
  }
  for (const int child : place.children) {
    options.peers.push_back(child);
  }
  options.prefix = prefix(rendezvous, epoch);
  options.slotBase = epoch << kSlotBits;
  auto pairs = PairSet::connect(rendezvous, options, interrupt, deadline);
  if (!pairs) {
    return pairs.status();
  }
  std::unique_ptr<VoteTree> tree(new VoteTree(rendezvous.rank().rank, epoch));
  tree->pairs_ = std::move(*pairs);
  tree->chunk_.resize(kChunk);
  Status status;
  if (place.parent >= 0) {
    status = tree->addLane(tree->parent_, place.parent);
  }
  for (const int child : place.children) {
    if (status.ok()) {
      status = tree->addLane(tree->children_.emplace_back(), child);
      tree->children_.back()->levels = levelsBelow(child, rendezvous.rank().size, kFanOut);
    }
  }
  if (status.ok()) {
    auto buffer = tree->pairs_->addBuffer(tree->chunk_.data(), tree->chunk_.size());
    if (buffer) {
      tree->chunkBuffer_ = *buffer;
      return tree;
    }
    status = buffer.status();
  }
  return status;
}

Status VoteTree::addLane(std::unique_ptr<Lane>& lane, int peer) {
  lane = std::make_unique<Lane>();
  lane->peer = peer;
  auto in = pairs_->addBuffer(lane->in.data(), lane->in.size());
  if (!in) {
    return in.status();
  }
  lane->inBuffer = *in;
  auto out = pairs_->addBuffer(lane->out.data(), lane->out.size());
  if (!out) {
    return out.status();
  }
  lane->outBuffer = *out;
  return ask(*lane);
}

Status VoteTree::ask(Lane& lane) {
  return pairs_->receive(*lane.inBuffer, lane.peer, kRecordSlot, 0, kRecordBytes);
}

Result<VoteRecord> VoteTree::take(
    Lane& lane, RecordKind kind, const VoteKey& key, Interrupt& interrupt, Deadline deadline) {
  const Status received = pairs_->awaitReceived(*lane.inBuffer, lane.peer, interrupt, deadline);
  if (!received) {
    return received;
  }
  auto record = decode(lane.in);
  if (!record) {
    return record;
  }
  if (record->kind != kind || record->key != key) {
    return Status(Code::kUnavailable,
                  "ranks are out of step: rank " + std::to_string(rank_) + " is at " +
                      key.toString() + ", rank " + std::to_string(lane.peer) + " at " +
                      record->key.toString() +
                      (record->kind == kind ? "" : " in another kind of collective"));
  }
  return record;
}

Status VoteTree::pass(Lane& lane, const VoteRecord& record) {
  encode(record, lane.out);
  return pairs_->send(*lane.outBuffer, lane.peer, kRecordSlot, 0, kRecordBytes);
}

Deadline VoteTree::ballotsLimit(const Lane& child, Deadline deadline, Duration telling) {
  return Deadline::at(deadline.when() -
                      telling * (kLevels - std::min(child.levels, kLevels - 1)) / kLevels);
}

Result<VoteRecord> VoteTree::collect(const VoteKey& key,
                                     const Ballot& ballot,
                                     Interrupt& interrupt,
                                     Deadline deadline,
                                     std::optional<Duration> handOver) {
  VoteRecord all = ballotRecord(key, ballot, rank_);
  const Duration telling =
      children_.empty() || deadline.isNever()
          ? Duration::zero()
          : std::min(kTelling, deadline.remaining(SteadyClock()) / kTellingShare);
  for (const auto& child : children_) {
    const auto record =
        take(*child, RecordKind::kBallots, key, interrupt, ballotsLimit(*child, deadline, telling));
    if (!record) {
      return record.status();
    }
    combine(all, *record);
  }
  if (isRoot()) {
    VoteRecord result;
    result.kind = RecordKind::kVerdict;
    result.key = key;
    result.verdict = conclude(all, ballot);
    return result;
  }
  Status status = pass(*parent_, all);
  if (status.ok() && handOver) {
    status = awaitPassed(
        *parent_, interrupt, deadline.earliest(Deadline::after(SteadyClock(), *handOver)));
    if (status.code() == Code::kDeadlineExceeded && !deadline.passed(SteadyClock())) {
      status = Status(Code::kUnavailable, status.message());
    }
  }
  if (!status) {
    return status;
  }
  // Not the ballots' leaving: where a parent closes just then Gloo forgets that send and its waiter
  // for ever, while the pending receive hears of it.
  auto verdict = take(*parent_, RecordKind::kVerdict, key, interrupt, deadline);
  if (verdict && !handOver) {
    status = awaitPassed(*parent_, interrupt, deadline);
  }
  return status.ok() ? std::move(verdict) : Result<VoteRecord>(status);
}

Status VoteTree::awaitPassed(Lane& lane, Interrupt& interrupt, Deadline deadline) {
  return pairs_->awaitSent(*lane.outBuffer, lane.peer, interrupt, deadline);
}

Status VoteTree::handDown(const VoteRecord& record, Interrupt& interrupt, Deadline deadline) {
  Status first;
  std::vector<Lane*> sent;
  for (const auto& child : children_) {
    // Asked together with the verdict, the next record costs the child no wake-up of its own.
    Status passed = record.kind == RecordKind::kVerdict ? ask(*child) : Status();
    if (passed.ok()) {
      passed = pass(*child, record);
    }
    if (passed.ok()) {
      sent.push_back(child.get());
    }
    first.merge(passed);
  }
  // They have asked for it long before: it leaves at once, or never.
  const Deadline limit = deadline.earliest(Deadline::after(SteadyClock(), kHandOver));
  for (Lane* lane : sent) {
    first.merge(awaitPassed(*lane, interrupt, limit));
  }
  if (first.ok() && !isRoot()) {
    first = ask(*parent_);
  }
  return first;
}

Result<Verdict> VoteTree::vote(const VoteKey& key,
                               const Ballot& ballot,
                               Interrupt& interrupt,
                               Deadline deadline) {
  return voteWith(key, ballot, interrupt, deadline, std::nullopt);
}

Result<Verdict> VoteTree::probe(const VoteKey& key, Interrupt& interrupt, Deadline deadline) {
  return voteWith(key, Ballot{}, interrupt, deadline, kHandOver);
}

Result<Verdict> VoteTree::voteWith(const VoteKey& key,
                                   const Ballot& ballot,
                                   Interrupt& interrupt,
                                   Deadline deadline,
                                   std::optional<Duration> handOver) {
  const auto result = collect(key, ballot, interrupt, deadline, handOver);
  if (!result) {
    return result.status();
  }
  // From here on the verdict is known: a child that cannot be told does not make it unknown here.
  broken_ = !handDown(*result, interrupt, deadline).ok();
  return result->verdict;
}

Status VoteTree::handDownChunk(Interrupt& interrupt, Deadline deadline) {
  for (const auto& child : children_) {
    const Status sent = pairs_->send(*chunkBuffer_, child->peer, kChunkSlot, 0, kChunk);
    if (!sent) {
      return sent;
    }
  }
  for (const auto& child : children_) {
    const Status sent = pairs_->awaitSent(*chunkBuffer_, child->peer, interrupt, deadline);
    if (!sent) {
      return sent;
    }
  }
  return Status();
}

Result<std::string> VoteTree::share(const VoteKey& key,
                                    std::string bytes,
                                    Interrupt& interrupt,
                                    Deadline deadline) {
  VoteRecord header;
  header.kind = RecordKind::kShare;
  header.key = key;
  header.length = bytes.size();
  if (!isRoot()) {
    const auto received = take(*parent_, RecordKind::kShare, key, interrupt, deadline);
    if (!received) {
      return received.status();
    }
    header = *received;
    if (header.length > kMaxShare) {
      return Status(Code::kUnavailable, "rank 0 shares more bytes than allowed");
    }
    bytes.assign(static_cast<std::size_t>(header.length), '\0');
  }
  Status status = handDown(header, interrupt, deadline);
  for (std::size_t begin = 0; status.ok() && begin < bytes.size(); begin += kChunk) {
    const std::size_t size = std::min(kChunk, bytes.size() - begin);
    if (isRoot()) {
      std::memcpy(chunk_.data(), bytes.data() + begin, size);
    } else {
      status = pairs_->receive(*chunkBuffer_, parent_->peer, kChunkSlot, 0, kChunk);
      if (status.ok()) {
        status = pairs_->awaitReceived(*chunkBuffer_, parent_->peer, interrupt, deadline);
      }
      if (status.ok()) {
        std::memcpy(bytes.data() + begin, chunk_.data(), size);
      }
    }
    if (status.ok()) {
      status = handDownChunk(interrupt, deadline);
    }
  }
  if (!status) {
    return status;
  }
  return bytes;
}

Result<std::string> VoteTree::takeBytes(Lane& child,
                                        const VoteKey& key,
                                        Interrupt& interrupt,
                                        Deadline deadline) {
  const auto header = take(child, RecordKind::kCollect, key, interrupt, deadline);
  if (!header) {
    return header.status();
  }
  if (header->length > kMaxShare) {
    return Status(Code::kUnavailable,
                  "rank " + std::to_string(child.peer) + " sends more bytes than allowed");
  }
  Status status = ask(child);
  std::string bytes(static_cast<std::size_t>(header->length), '\0');
  for (std::size_t begin = 0; status.ok() && begin < bytes.size(); begin += kChunk) {
    status = pairs_->receive(*chunkBuffer_, child.peer, kChunkSlot, 0, kChunk);
    if (status.ok()) {
      status = pairs_->awaitReceived(*chunkBuffer_, child.peer, interrupt, deadline);
    }
    if (status.ok()) {
      std::memcpy(bytes.data() + begin, chunk_.data(), std::min(kChunk, bytes.size() - begin));
    }
  }
  return status.ok() ? Result<std::string>(std::move(bytes)) : status;
}

Status VoteTree::passBytes(const VoteKey& key,
                           const std::string& bytes,
                           Interrupt& interrupt,
                           Deadline deadline) {
  VoteRecord header;
  header.kind = RecordKind::kCollect;
  header.key = key;
  header.length = bytes.size();
  Status status = pass(*parent_, header);
  if (status.ok()) {
    status = pairs_->awaitSent(*parent_->outBuffer, parent_->peer, interrupt, deadline);
  }
  for (std::size_t begin = 0; status.ok() && begin < bytes.size(); begin += kChunk) {
    std::memcpy(chunk_.data(), bytes.data() + begin, std::min(kChunk, bytes.size() - begin));
    status = pairs_->send(*chunkBuffer_, parent_->peer, kChunkSlot, 0, kChunk);
    if (status.ok()) {
      status = pairs_->awaitSent(*chunkBuffer_, parent_->peer, interrupt, deadline);
    }
  }
  return status;
}

Result<std::vector<std::string>> VoteTree::gather(const VoteKey& key,
                                                  const std::string& bytes,
                                                  int size,
                                                  Interrupt& interrupt,
                                                  Deadline deadline) {
  WireWriter mine;
  if (!bytes.empty()) {
    mine.i32(rank_);
    mine.text(bytes, kMaxShare);
  }
  std::string all = mine.take();
  for (const auto& child : children_) {
    auto theirs = takeBytes(*child, key, interrupt, deadline);
    if (!theirs) {
      return theirs.status();
    }
    all += *theirs;
  }
  if (all.size() > kMaxShare) {
    return Status(Code::kInvalidArgument, "the ranks send more than 64 MiB to rank 0");
  }
  if (!isRoot()) {
    const Status passed = passBytes(key, all, interrupt, deadline);
    return passed.ok() ? Result<std::vector<std::string>>(std::vector<std::string>()) : passed;
  }
  std::vector<std::string> list(static_cast<std::size_t>(size));
  WireReader reader(all);
  while (reader.good() && !reader.finished()) {
    const int rank = reader.i32();
    std::string text = reader.text(kMaxShare);
    if (!reader.good() || rank < 0 || rank >= size) {
      return Status(Code::kUnavailable, "what the ranks send to rank 0 is malformed");
    }
    list[static_cast<std::size_t>(rank)] = std::move(text);
  }
  return list;
}

}  // namespace pushrod::ranks
