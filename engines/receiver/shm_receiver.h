// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "engines/receiver/shm_info.h"
#include "engines/receiver/sink.h"
#include "engines/receiver/socket.h"

namespace pushrod::engines::receiver {

/// The receiving end of the shm transport in one worker: maps its own host's segment read-only,
/// hands the chunk on and forgets the segment again. One thread.
class ShmReceiver {
 public:
  ShmReceiver(const StopSignal& stop, std::string hostId)
      : stop_(stop), hostId_(std::move(hostId)) {}

  void open() { open_ = true; }

  void close() { open_ = false; }

  [[nodiscard]] bool opened() const { return open_; }

  /// A session begins: its chunks are counted from 0.
  void beginSession() { index_ = 0; }

  /// The chunk that the next receive is.
  [[nodiscard]] std::uint32_t nextChunk() const { return index_; }

  /// Counts a chunk that is not read.
  void skip() { ++index_; }

  /// One chunk. Nothing is handed on unless the segment holds all of it.
  Status receive(const ShmUpdate& update, Sink& sink);

 private:
  [[nodiscard]] Status waitGone(const ShmSegment& segment) const;
  Status readChunk(const ShmUpdate& update, const ShmSegment& segment, Sink& sink) const;

  const StopSignal& stop_;
  const std::string hostId_;
  bool open_ = false;
  std::uint32_t index_ = 0;
};

}  // namespace pushrod::engines::receiver
