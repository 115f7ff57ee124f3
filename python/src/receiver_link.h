// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "engines/receiver/tcp_receiver.h"
#include "python/src/receiver_chunk.h"

namespace pushrod::python {

/// Called again and again by whoever waits; true ends the wait. It may take the interpreter's lock.
using Interrupted = std::function<bool()>;

/// Connections to all sources, and the signal that ends whoever waits for them.
struct Link {
  engines::receiver::StopSignal stop;
  engines::receiver::TcpReceiver receiver{stop};
};

/// Joins all sources on a thread of its own. An interrupt gives `cancelled`.
Status joinSources(Link& link,
                   const engines::receiver::TcpInit& init,
                   std::uint32_t rank,
                   const Interrupted& interrupted);

/// Reads one update on a thread of its own: a chunk is read while the one before is being loaded,
/// so that at most two are in memory that nobody keeps. The other functions are for one thread.
class UpdateReader {
 public:
  UpdateReader(std::shared_ptr<Link> link, engines::receiver::TcpUpdate update);
  UpdateReader(const UpdateReader&) = delete;
  UpdateReader& operator=(const UpdateReader&) = delete;
  /// An update that has not ended is given up, and its connections are closed.
  ~UpdateReader();

  /// The next chunk; null: the update ended well. Any failure closes the connections.
  Result<std::shared_ptr<Chunk>> next(const Interrupted& interrupted);

  /// What the thread has spent reading, without its waits for the loader, once it has ended.
  [[nodiscard]] std::chrono::duration<double> reading() const;

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  Status waitForRoom();
  void deliver(std::shared_ptr<Chunk> chunk);
  void giveUp();

  std::shared_ptr<Link> link_;
  const engines::receiver::TcpUpdate update_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Chunk> ready_;
  bool ended_ = false;
  bool givenUp_ = false;
  Status status_;
  std::chrono::duration<double> reading_{0};
  std::thread thread_;
};

}  // namespace pushrod::python
