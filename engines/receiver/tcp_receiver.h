// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "engines/receiver/sink.h"
#include "engines/receiver/socket.h"
#include "engines/receiver/tcp_info.h"

struct XXH3_state_s;

namespace pushrod::engines::receiver {

/// The receiving end of the tcp transport in one worker. One thread, except connections(). A
/// receive has no time limit of its own, as a server has none: the source's abort, its death or the
/// stop signal ends it.
class TcpReceiver {
 public:
  explicit TcpReceiver(const StopSignal& stop) : stop_(stop) {}

  /// Connects to every source as `rank`. Earlier connections are closed first.
  Status join(const TcpInit& init, std::uint32_t rank);

  [[nodiscard]] bool joined() const { return !sockets_.empty(); }

  /// One update, to its end frame. Any failure closes all connections.
  Status receive(const TcpUpdate& update, Sink& sink);
  void close();

  /// Open connections to sources. Any thread.
  [[nodiscard]] int connections() const { return open_.load(); }

 private:
  struct Frame {
    std::uint32_t kind = 0;
    std::uint32_t index = 0;
    std::uint64_t length = 0;
    std::uint64_t digest = 0;
  };

  Status joinSource(const TcpSource& source, const TcpInit& init, std::uint32_t rank);
  Status receiveAll(Socket& socket, const TcpUpdate& update, Sink& sink);
  Status readEnd(Socket& socket, std::size_t chunks);
  Status readFrame(Socket& socket, Frame& frame);
  Status readAbort(Socket& socket, const Frame& frame);
  Status readChunk(Socket& socket,
                   std::span<const TensorSpec> tensors,
                   std::uint32_t index,
                   std::uint64_t bytes,
                   Sink& sink);
  Status readTensor(Socket& socket, const TensorSpec& spec, Sink& sink, XXH3_state_s* chunkDigest);

  const StopSignal& stop_;
  std::vector<Socket> sockets_;
  std::uint64_t bufferBytes_ = 0;
  std::atomic<int> open_{0};
};

}  // namespace pushrod::engines::receiver
