// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/deadline.h>
#include <pushrod/result.h>
#include <pushrod/tensor.h>

namespace pushrod {

enum class TransportKind : std::uint8_t { kNccl, kIpc, kTcp, kShm, kMixed };

/// Lower-case name as in configuration and metric labels.
[[nodiscard]] std::string_view transportName(TransportKind kind);

/// One engine as a channel sees it.
struct PlaneEngine {
  std::string name;
  int workers = 1;       ///< receiving processes: TP x PP x PCP x DP
  std::string dpGroup;   ///< engines of one external data-parallel group share one rank offset
  std::string url = {};  ///< as configured; tells which local address routes to the engine
};

/// What a new channel is built for.
struct ChannelSpec {
  std::uint64_t epoch = 0;
  std::vector<PlaneEngine> engines;
};

/// The sending side of one transport on one rank. A channel is announced (control thread), opened
/// (caller thread, while the engines' init calls run), used for any number of updates, and ends by
/// abort(). Functions marked "caller" block the trainer's thread, one at a time, until done, their
/// deadline, or interrupt(); the others return at once.
class DataPlane {
 public:
  DataPlane() = default;
  DataPlane(const DataPlane&) = delete;
  DataPlane& operator=(const DataPlane&) = delete;
  virtual ~DataPlane() = default;

  [[nodiscard]] virtual TransportKind kind() const = 0;

  /// Starts a new channel: binds what engines will connect to. Returns one `init_info` JSON text
  /// per engine, in the order of `spec.engines`. An old channel must have been aborted before.
  virtual Result<std::vector<std::string>> announce(const ChannelSpec& spec) = 0;
  /// Whether a channel is open and sound.
  [[nodiscard]] virtual bool ready() const = 0;
  /// Caller. Waits until every worker of every engine has joined the announced channel.
  virtual Status open(Deadline deadline) = 0;
  /// The `update_info` JSON text that goes with a pass over `manifest`, equal for all engines.
  virtual Result<std::string> updateInfo(const Manifest& manifest) = 0;
  /// Caller. Begins an update over `manifest`; `put` then follows for each tensor in order.
  virtual Status begin(const Manifest& manifest) = 0;
  /// Caller. Packs and sends one tensor, cast to `spec.dtype` where it differs (ruling P4). The
  /// view was checked against `spec` before. May return while bytes are still on their way.
  virtual Status put(const TensorSpec& spec, const TensorView& view, Deadline deadline) = 0;
  /// Caller. Sends what is left and the end mark; returns when every byte was handed over.
  virtual Status flush(Deadline deadline) = 0;
  /// Any thread. Ends the current or next caller function with `reason`; sticky until announce() or
  /// begin().
  virtual void interrupt(const Status& reason) noexcept = 0;
  /// Ends the channel: tells the receivers why where they can hear it, and closes everything. Not
  /// while a caller function runs. Idempotent.
  virtual void abort(const Status& reason) noexcept = 0;

  /// Payload bytes written to `engine` (index into the spec) since begin(), all its workers
  /// together.
  [[nodiscard]] virtual std::uint64_t bytesSent(std::size_t engine) const = 0;
  /// Tensors cast since begin().
  [[nodiscard]] virtual std::uint64_t casts() const = 0;
  /// Bytes of packed buffers held now, and of those the bytes not yet handed over.
  [[nodiscard]] virtual std::uint64_t bufferBytes() const = 0;
  [[nodiscard]] virtual std::uint64_t inFlightBytes() const = 0;
  /// Gives packed buffers back to the system (transport.keep_buffers: false).
  virtual void releaseBuffers() = 0;
};

}  // namespace pushrod
