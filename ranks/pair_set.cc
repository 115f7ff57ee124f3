// SPDX-License-Identifier: Apache-2.0
#include "ranks/pair_set.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

#include "ranks/rendezvous.h"
#include "ranks/run_id.h"
#include "ranks/wire.h"

namespace pushrod::ranks {

namespace {

/// Gloo's connect waits five times the context's limit. A peer that has published its addresses is
/// in its own connect and answers in milliseconds.
constexpr Duration kLongestConnect{10000};
constexpr Duration::rep kConnectFactor = 5;
constexpr std::size_t kMaxPairAddress = 192;

Status glooFailed(const std::string& what, int peer, const std::exception& error) {
  return Status(Code::kUnavailable,
                what + " rank " + std::to_string(peer) +
                    " failed: " + std::string(cut(error.what(), kMaxMessage / 2)));
}

std::string addressKey(const std::string& prefix, int rank) {
  return prefix + "/" + std::to_string(rank);
}

/// Of two ranks one waits in Gloo's connect until the other calls its own. Ranks around a ring
/// could all wait so; all taking their pairs in one order over all pairs cannot.
std::vector<int> inOrder(int rank, std::vector<int> peers) {
  std::sort(peers.begin(), peers.end(), [rank](int left, int right) {
    return std::pair(std::min(rank, left), std::max(rank, left)) <
           std::pair(std::min(rank, right), std::max(rank, right));
  });
  return peers;
}

}  // namespace

/// The state of one connect.
struct PairSet::Builder {
  PairSet& set;
  Rendezvous& rendezvous;
  const Options& options;
  Interrupt& interrupt;
  Deadline deadline;
  std::vector<int> missing;
  std::atomic<int> joining{-1};  ///< the peer whose pair connects just now

  [[nodiscard]] Duration connectLimit() const {
    const Duration left = std::min(deadline.remaining(SteadyClock()), kLongestConnect);
    return std::max(left / kConnectFactor, Duration{1});
  }

  /// Makes the pairs and publishes all their addresses under one key.
  Status publish() {
    WireWriter addresses;
    int current = -1;
    try {
      set.context_ =
          rendezvous.device()->createContext(rendezvous.rank().rank, rendezvous.rank().size);
      set.context_->setTimeout(connectLimit());
      for (const int peer : options.peers) {
        current = peer;
        auto& pair = set.context_->createPair(peer);
        pair->setLocalRank(0);
        const std::vector<char> address = pair->address().bytes();
        addresses.i32(peer);
        addresses.text({address.data(), address.size()}, kMaxPairAddress);
      }
    } catch (const std::exception& error) {
      return glooFailed("preparing the connection to", current, error);
    }
    return rendezvous.store().set(
        addressKey(options.prefix, rendezvous.rank().rank), addresses.bytes(), deadline);
  }

  /// What `peer` published for us.
  Result<std::vector<char>> addressFor(const std::string& published, int peer) const {
    WireReader reader(published);
    while (reader.good() && !reader.finished()) {
      const int target = reader.i32();
      const std::string address = reader.text(kMaxPairAddress);
      if (reader.good() && target == rendezvous.rank().rank && !address.empty()) {
        return std::vector<char>(address.begin(), address.end());
      }
    }
    return Status(Code::kUnavailable,
                  "rank " + std::to_string(peer) + " published no address for rank " +
                      std::to_string(rendezvous.rank().rank));
  }

  Status join(int peer, const std::string& published) {
    const auto address = addressFor(published, peer);
    if (!address) {
      return address.status();
    }
    joining = peer;
    if (Status stopped = interrupt.reason(); !stopped.ok()) {
      return stopped;
    }
    try {
      set.context_->setTimeout(connectLimit());
      set.context_->getPair(peer)->connect(*address);
    } catch (const std::exception& error) {
      return glooFailed("connecting to", peer, error);
    }
    joining = -1;
    return interrupt.reason();
  }

  /// Wakes a waiting connect() as the pair's closing does: what Gloo offers for it. Only of that
  /// pair, and only while it waits, since Gloo's close() resets the connection: a stopped peer that
  /// has not accepted one yet (the system answers for it) would end with Gloo's uncaught exception
  /// as soon as it runs again.
  void closeJoining() const noexcept {
    try {
      if (const int peer = joining; peer >= 0) {
        set.context_->getPair(peer)->close();
      }
    } catch (const std::exception&) {
      // The connect then ends by its own limit.
    }
  }

  Status joinAll() {
    const Interrupt::Waker waker(interrupt, [this] { closeJoining(); });
    Status status = interrupt.reason();
    PollPause pause;
    while (status.ok() && !missing.empty()) {
      status = look();
      if (status.ok() && !missing.empty()) {
        status = pause.wait(interrupt, deadline);
      }
    }
    const Status stopped = interrupt.reason();
    return stopped.ok() ? status : stopped;
  }

  /// Connects, in order, to the peers that have published, up to the first that has not.
  Status look() {
    std::vector<std::string> keys;
    for (const int peer : missing) {
      keys.push_back(addressKey(options.prefix, peer));
    }
    const auto published = rendezvous.store().get(keys, deadline);
    if (!published) {
      return published.status();
    }
    std::size_t done = 0;
    for (; done < missing.size() && (*published)[done]; ++done) {
      const Status joined = join(missing[done], *(*published)[done]);
      if (!joined) {
        return joined;
      }
    }
    missing.erase(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(done));
    return Status();
  }
};

Result<std::unique_ptr<PairSet>> PairSet::connect(Rendezvous& rendezvous,
                                                  const Options& options,
                                                  Interrupt& interrupt,
                                                  Deadline deadline) {
  std::unique_ptr<PairSet> set(new PairSet());
  set->peers_ = options.peers;
  set->slotBase_ = options.slotBase;
  Builder builder{*set,
                  rendezvous,
                  options,
                  interrupt,
                  deadline,
                  inOrder(rendezvous.rank().rank, options.peers)};
  Status status = builder.publish();
  if (status.ok()) {
    status = builder.joinAll();
  }
  if (status.ok()) {
    return set;
  }
  if (status.code() == Code::kDeadlineExceeded && !builder.missing.empty()) {
    return Status(Code::kDeadlineExceeded,
                  rankList(builder.missing) + " did not connect to rank " +
                      std::to_string(rendezvous.rank().rank) + " in time");
  }
  return status;
}

PairSet::~PairSet() {
  // This order is the one without races inside Gloo: pairs, buffers, context.
  try {
    for (const int peer : peers_) {
      if (context_ != nullptr) {
        context_->getPair(peer).reset();
      }
    }
    const std::lock_guard lock(mutex_);
    buffers_.clear();
    context_.reset();
  } catch (const std::exception&) {
    // Closing a broken connection may complain; there is nobody to tell and nothing to keep.
    context_.reset();
  }
}

Result<PairSet::Buffer*> PairSet::addBuffer(void* memory, std::size_t size) {
  try {
    auto buffer = context_->createUnboundBuffer(memory, size);
    const std::lock_guard lock(mutex_);
    buffers_.push_back(std::move(buffer));
    return buffers_.back().get();
  } catch (const std::exception& error) {
    return Status(Code::kUnavailable, std::string("making a Gloo buffer failed: ") + error.what());
  }
}

void PairSet::dropBuffer(Buffer* buffer) {
  const std::lock_guard lock(mutex_);
  std::erase_if(buffers_, [buffer](const auto& each) { return each.get() == buffer; });
}

Status PairSet::receive(
    Buffer& buffer, int peer, std::uint32_t slot, std::size_t offset, std::size_t size) {
  try {
    buffer.recv(peer, slotBase_ | slot, offset, size);
  } catch (const std::exception& error) {
    return glooFailed("receiving from", peer, error);
  }
  return Status();
}

Status PairSet::send(
    Buffer& buffer, int peer, std::uint32_t slot, std::size_t offset, std::size_t size) {
  try {
    buffer.send(peer, slotBase_ | slot, offset, size);
  } catch (const std::exception& error) {
    return glooFailed("sending to", peer, error);
  }
  return Status();
}

namespace {

/// Runs one of Gloo's waits with the time left, which is never 0: Gloo takes that for "no limit" in
/// places.
template <typename Wait>
Status awaitOne(
    const std::string& what, int peer, Interrupt& interrupt, Deadline deadline, Wait wait) {
  const SteadyClock clock;
  const Status stopped = interrupt.reason();
  if (!stopped) {
    return stopped;
  }
  const Duration left = deadline.remaining(clock);
  const Status late(Code::kDeadlineExceeded,
                    what + " rank " + std::to_string(peer) + " took longer than allowed");
  if (left == Duration::zero()) {
    return late;
  }
  try {
    if (wait(left)) {
      return Status();
    }
    const Status reason = interrupt.reason();
    return reason.ok() ? Status(Code::kUnavailable, what + " a rank was given up") : reason;
  } catch (const std::exception& error) {
    return deadline.passed(clock) ? late : glooFailed(what, peer, error);
  }
}

}  // namespace

Status PairSet::awaitReceived(Buffer& buffer, int peer, Interrupt& interrupt, Deadline deadline) {
  return awaitOne("hearing from", peer, interrupt, deadline, [&buffer](Duration left) {
    return buffer.waitRecv(nullptr, left);
  });
}

Status PairSet::awaitSent(Buffer& buffer, int peer, Interrupt& interrupt, Deadline deadline) {
  return awaitOne("sending to", peer, interrupt, deadline, [&buffer](Duration left) {
    return buffer.waitSend(nullptr, left);
  });
}

void PairSet::abort() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    for (const auto& buffer : buffers_) {
      buffer->abortWaitRecv();
      buffer->abortWaitSend();
    }
  } catch (const std::exception&) {
    // The waiter then ends by its own limit.
  }
}

}  // namespace pushrod::ranks
