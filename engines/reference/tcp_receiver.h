// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "engines/reference/kept_bytes.h"
#include "engines/reference/receive.h"
#include "engines/reference/socket.h"
#include "engines/reference/tcp_info.h"

struct XXH3_state_s;

namespace pushrod::engines::reference {

/// The receiving end of the tcp transport in one worker. One thread, except connections(). A
/// receive has no time limit of its own, as a server has none: the source's abort, its death or the
/// stop signal ends it.
class TcpReceiver {
 public:
  TcpReceiver(const StopSignal& stop, ByteBudget& budget) : stop_(stop), budget_(budget) {}

  /// Connects to every source as `rank`. Earlier connections are closed first.
  Status join(const TcpInit& init, std::uint32_t rank);

  [[nodiscard]] bool joined() const { return !sockets_.empty(); }

  /// One update, to its end frame. Any failure closes all connections.
  Status receive(const TcpUpdate& update, const ReceiveFault& fault, const ReceiveHooks& hooks);
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
  Status receiveAll(Socket& socket,
                    const TcpUpdate& update,
                    const ReceiveFault& fault,
                    const ReceiveHooks& hooks);
  Status readFrame(Socket& socket, Frame& frame);
  Status readAbort(Socket& socket, const Frame& frame);
  Status readChunk(Socket& socket,
                   const std::vector<TensorSpec>& tensors,
                   const ChunkPlan& plan,
                   std::uint32_t index,
                   std::vector<LoadedTensor>& loaded);
  Result<LoadedTensor> readTensor(Socket& socket,
                                  const TensorSpec& spec,
                                  XXH3_state_s* chunkDigest);
  Status applyFault(Socket& socket, const ReceiveFault& fault, const ReceiveHooks& hooks);

  const StopSignal& stop_;
  ByteBudget& budget_;
  std::vector<Socket> sockets_;
  std::uint64_t bufferBytes_ = 0;
  std::vector<std::uint8_t> piece_;
  std::atomic<int> open_{0};
};

}  // namespace pushrod::engines::reference
