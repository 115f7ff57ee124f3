// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "engines/reference/kept_bytes.h"
#include "engines/reference/receive.h"
#include "engines/reference/shm_info.h"
#include "engines/reference/socket.h"

namespace pushrod::engines::reference {

/// The receiving end of the shm transport in one worker: maps its own host's segment read-only,
/// copies the chunk out and forgets the segment again. One thread.
class ShmReceiver {
 public:
  ShmReceiver(const StopSignal& stop, ByteBudget& budget, std::string hostId)
      : stop_(stop), budget_(budget), hostId_(std::move(hostId)) {}

  void open() { open_ = true; }

  void close() { open_ = false; }

  [[nodiscard]] bool opened() const { return open_; }

  /// A session begins: its chunks are counted from 0.
  void beginSession() { index_ = 0; }

  /// One chunk. Nothing is handed on unless the segment holds all of it.
  Status receive(const ShmUpdate& update, const ReceiveFault& fault, const ReceiveHooks& hooks);

 private:
  Status applyFault(const ShmSegment& segment,
                    const ReceiveFault& fault,
                    const ReceiveHooks& hooks) const;
  Status readChunk(const ShmUpdate& update, const ShmSegment& segment, const ReceiveHooks& hooks);

  const StopSignal& stop_;
  ByteBudget& budget_;
  const std::string hostId_;
  bool open_ = false;
  std::uint32_t index_ = 0;
};

}  // namespace pushrod::engines::reference
