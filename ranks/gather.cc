// SPDX-License-Identifier: Apache-2.0
#include "ranks/gather.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <numeric>
#include <string>

#include "common/hash.h"
#include "ranks/rendezvous.h"

namespace pushrod::ranks {

namespace {

constexpr std::uint32_t kAnnounceSlot = 1;
constexpr std::uint32_t kDataSlot = 2;
constexpr unsigned kSlotBits = 8;
/// Above every epoch: messages of votes and of gathers can never meet.
constexpr std::uint64_t kGatherSlots = std::uint64_t{1} << 63;

std::uint64_t digestOf(std::span<const std::size_t> counts) {
  std::uint64_t digest = common::fnv1a("counts");
  for (const std::size_t count : counts) {
    digest = common::fnv1a(std::to_string(count) + ",", digest);
  }
  return digest;
}

}  // namespace

Gather::~Gather() = default;

int Gather::size() const {
  return rendezvous_.rank().size;
}

int Gather::rank() const {
  return rendezvous_.rank().rank;
}

Status Gather::fail(const Status& status) {
  failed_ = true;
  std::unique_ptr<PairSet> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped = std::move(pairs_);
  }
  dropped.reset();
  const Status reason = interrupt_.reason();
  return reason.ok() ? status.prefixed("gathering a tensor's shares") : reason;
}

Status Gather::agreeOnGeneration(Deadline deadline) {
  std::vector<std::string> keys;
  keys.reserve(static_cast<std::size_t>(size()));
  for (int each = 0; each < size(); ++each) {
    keys.push_back(rendezvous_.key("gather/at/" + std::to_string(each)));
  }
  const auto own = static_cast<std::size_t>(rank());
  Status status = rendezvous_.store().set(keys[own], std::to_string(generation_), deadline);
  PollPause pause;
  while (status.ok()) {
    const auto values = rendezvous_.store().get(keys, deadline);
    if (!values) {
      return values.status();
    }
    std::uint64_t largest = generation_;
    bool all = true;
    for (const auto& value : *values) {
      // Only ranks of this run write here, and only numbers.
      const std::uint64_t theirs = value ? std::strtoull(value->c_str(), nullptr, 10) : 0;
      all = all && theirs == generation_;
      largest = std::max(largest, theirs);
    }
    if (all) {
      return Status();
    }
    if (largest > generation_) {
      generation_ = largest;
      status = rendezvous_.store().set(keys[own], std::to_string(generation_), deadline);
      continue;
    }
    status = pause.wait(interrupt_, deadline);
  }
  return status;
}

Status Gather::connect(Deadline deadline) {
  if (!rendezvous_.met()) {
    return Status(Code::kFailedPrecondition, "the ranks have not met yet");
  }
  const Status agreed = agreeOnGeneration(deadline);
  if (!agreed) {
    return agreed;
  }
  PairSet::Options options;
  options.peers.push_back(std::min(left(), right()));
  if (left() != right()) {
    options.peers.push_back(std::max(left(), right()));
  }
  options.prefix = rendezvous_.key("gather/" + std::to_string(generation_));
  options.slotBase = kGatherSlots | (generation_ << kSlotBits);
  auto pairs = PairSet::connect(rendezvous_, options, interrupt_, deadline);
  if (!pairs) {
    return pairs.status();
  }
  auto mine = (*pairs)->addBuffer(&mine_, sizeof(mine_));
  auto theirs = (*pairs)->addBuffer(&theirs_, sizeof(theirs_));
  if (!mine || !theirs) {
    return mine ? theirs.status() : mine.status();
  }
  mineBuffer_ = *mine;
  theirsBuffer_ = *theirs;
  mine_ = {};
  const std::lock_guard lock(mutex_);
  pairs_ = std::move(*pairs);
  return Status();
}

Status Gather::recover(Deadline deadline) {
  renew();
  const Status connected = size() > 1 ? connect(deadline) : Status();
  return connected.ok() ? connected : fail(connected);
}

void Gather::renew() {
  (void)fail(Status());
  interrupt_.clear();
  ++generation_;
  failed_ = false;
}

void Gather::abort(const Status& reason) noexcept {
  try {
    interrupt_.set(reason);
    const std::lock_guard lock(mutex_);
    if (pairs_ != nullptr) {
      pairs_->abort();
    }
  } catch (const std::exception&) {
    // Out of memory: the waiter ends by its deadline.
  }
}

Status Gather::compare(std::span<const std::size_t> counts, Deadline deadline) {
  ++mine_.call;
  mine_.digest = digestOf(counts);
  Status status = pairs_->receive(*theirsBuffer_, left(), kAnnounceSlot, 0, sizeof(theirs_));
  if (status.ok()) {
    status = pairs_->send(*mineBuffer_, right(), kAnnounceSlot, 0, sizeof(mine_));
  }
  if (status.ok()) {
    status = pairs_->awaitReceived(*theirsBuffer_, left(), interrupt_, deadline);
  }
  if (status.ok()) {
    status = pairs_->awaitSent(*mineBuffer_, right(), interrupt_, deadline);
  }
  if (status.ok() && theirs_ != mine_) {
    return Status(Code::kDataMismatch,
                  "rank " + std::to_string(left()) +
                      " gathers another tensor or other shares than "
                      "rank " +
                      std::to_string(rank()));
  }
  return status;
}

Status Gather::exchange(PairSet::Buffer& buffer,
                        std::size_t sendAt,
                        std::size_t sendSize,
                        std::size_t receiveAt,
                        std::size_t receiveSize,
                        Deadline deadline) {
  const std::size_t longest = std::max(sendSize, receiveSize);
  for (std::size_t done = 0; done < longest; done += kPiece) {
    const std::size_t out = done < sendSize ? std::min(kPiece, sendSize - done) : 0;
    const std::size_t in = done < receiveSize ? std::min(kPiece, receiveSize - done) : 0;
    Status status;
    if (in > 0) {
      status = pairs_->receive(buffer, left(), kDataSlot, receiveAt + done, in);
    }
    if (status.ok() && out > 0) {
      status = pairs_->send(buffer, right(), kDataSlot, sendAt + done, out);
    }
    if (status.ok() && in > 0) {
      status = pairs_->awaitReceived(buffer, left(), interrupt_, deadline);
    }
    if (status.ok() && out > 0) {
      status = pairs_->awaitSent(buffer, right(), interrupt_, deadline);
    }
    if (!status) {
      return status;
    }
  }
  return Status();
}

Status Gather::circulate(PairSet::Buffer& buffer,
                         std::span<const std::size_t> counts,
                         Deadline deadline) {
  std::vector<std::size_t> offsets(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), std::size_t{0});
  // In step s every rank hands on the share that it got in the step before.
  for (int step = 0; step + 1 < size(); ++step) {
    const auto sent = static_cast<std::size_t>((rank() - step + size()) % size());
    const auto got = static_cast<std::size_t>((rank() - step - 1 + size()) % size());
    const Status status =
        exchange(buffer, offsets[sent], counts[sent], offsets[got], counts[got], deadline);
    if (!status) {
      return status;
    }
  }
  return Status();
}

Status Gather::allGatherShares(std::span<const std::byte> mine,
                               std::span<std::byte> whole,
                               std::span<const std::size_t> counts,
                               Deadline deadline) {
  const auto own = static_cast<std::size_t>(rank());
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  if (counts.size() != static_cast<std::size_t>(size()) || total != whole.size() ||
      mine.size() != counts[own]) {
    return fail(Status(Code::kInvalidArgument, "the shares do not add up to the whole"));
  }
  const Status stopped = interrupt_.reason();
  if (!stopped || failed_) {
    return fail(Status(Code::kUnavailable, "an earlier gather failed and was not recovered from"));
  }
  const std::size_t offset =
      std::accumulate(counts.begin(), counts.begin() + rank(), std::size_t{0});
  if (!mine.empty() && mine.data() != whole.data() + offset) {
    std::memcpy(whole.data() + offset, mine.data(), mine.size());
  }
  if (size() == 1) {
    return Status();
  }
  Status status = pairs_ == nullptr ? connect(deadline) : Status();
  if (status.ok()) {
    status = compare(counts, deadline);
  }
  if (!status) {
    return fail(status);
  }
  if (total == 0) {
    return Status();
  }
  const auto buffer = pairs_->addBuffer(whole.data(), whole.size());
  if (!buffer) {
    return fail(buffer.status());
  }
  status = circulate(**buffer, counts, deadline);
  if (!status) {
    return fail(status);
  }
  pairs_->dropBuffer(*buffer);
  return Status();
}

}  // namespace pushrod::ranks
