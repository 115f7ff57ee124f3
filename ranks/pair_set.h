// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <pushrod/deadline.h>
#include <pushrod/result.h>

#include "ranks/interrupt.h"

namespace gloo::transport {
class Context;
class UnboundBuffer;
}  // namespace gloo::transport

namespace pushrod::ranks {

class Rendezvous;

/// Some pairs of one Gloo context and the buffers on them: the only file that talks to Gloo's
/// transport. After any failed or interrupted call the object must be dropped at once: the other
/// ranks hear of a failure only through that. One user thread; abort() from any.
///
/// The memory given to addBuffer must outlive the object. All sizes are agreed by construction,
/// since Gloo ends the process where they differ.
class PairSet {
 public:
  struct Options {
    std::vector<int> peers;  ///< in any order
    std::string prefix;      ///< of the store's keys; never used twice
    /// Raised above this for every message: messages of another set are never delivered here.
    std::uint64_t slotBase = 0;
  };

  using Buffer = gloo::transport::UnboundBuffer;

  /// Publishes our addresses and connects to every peer. All peers need to call it with the same
  /// prefix within the deadline. A failure names the peers that did not come.
  static Result<std::unique_ptr<PairSet>> connect(Rendezvous& rendezvous,
                                                  const Options& options,
                                                  Interrupt& interrupt,
                                                  Deadline deadline);
  ~PairSet();
  PairSet(const PairSet&) = delete;
  PairSet& operator=(const PairSet&) = delete;

  /// A buffer on `size` bytes at `memory`, valid until dropBuffer or the end of the set.
  Result<Buffer*> addBuffer(void* memory, std::size_t size);
  /// Only without a pending operation on it.
  void dropBuffer(Buffer* buffer);

  /// Starts to receive the buffer's bytes [offset, offset + size) from a peer.
  Status receive(
      Buffer& buffer, int peer, std::uint32_t slot, std::size_t offset, std::size_t size);
  Status send(Buffer& buffer, int peer, std::uint32_t slot, std::size_t offset, std::size_t size);
  /// Waits for one started operation: ok, the interrupt's reason, deadlineExceeded or unavailable.
  Status awaitReceived(Buffer& buffer, int peer, Interrupt& interrupt, Deadline deadline);
  Status awaitSent(Buffer& buffer, int peer, Interrupt& interrupt, Deadline deadline);

  /// Wakes the user's wait; set the interrupt first. Any thread; the caller keeps the object alive.
  void abort() noexcept;

 private:
  struct Builder;

  PairSet() = default;

  std::shared_ptr<gloo::transport::Context> context_;
  std::vector<int> peers_;
  std::uint64_t slotBase_ = 0;
  std::mutex mutex_;  ///< guards buffers_ against abort()
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

}  // namespace pushrod::ranks
