// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pushrod/data_plane.h>
#include <pushrod/executor.h>

#include "tests/sim/fake_engine.h"
#include "tests/sim/sim_chunks.h"
#include "transports/owner_runs.h"

namespace pushrod::sim {

/// A transport in virtual time. What a caller's thread would wait for is asked through the
/// functions ending in Later; they really wait until every engine is where it must be.
class SimPlane final : public DataPlane {
 public:
  using Done = std::function<void(const Status&)>;

  /// `chunks`: the memory that tensors are packed into, for engines that are told of each chunk by
  /// itself; null: the engines are sent a stream.
  /// `first`: channels are numbered from here on, differently in every process.
  SimPlane(Executor& executor,
           Pace& pace,
           std::vector<FakeEngine*> engines,
           SimChunks* chunks,
           std::uint64_t first)
      : executor_(executor),
        pace_(pace),
        engines_(std::move(engines)),
        chunks_(chunks),
        channel_(first) {}

  // One source of several (SimSource): a tensor is sent by the rank that owns it.

  /// From now on it is rank `rank`'s own.
  void ownedBy(int rank) { rank_ = rank; }

  std::uint64_t nextChannel() { return ++channel_; }

  /// Waits for the engines that are told of the channel; `source`: its place among the channel's
  /// sources, -1: it is none.
  void listen(std::uint64_t channel, int source, const std::vector<std::string>& engines);

  [[nodiscard]] bool isSource() const { return !rank_ || source_ >= 0; }

  void expect(const std::vector<std::string>& engines);
  void answered(const std::string& engine, std::size_t runs);

  void openLater(Deadline deadline, Done done);
  void putLater(std::size_t tensor, int content, Deadline deadline, Done done);
  void flushLater(Deadline deadline, Done done);

  [[nodiscard]] bool carries(std::uint64_t channel) const {
    return channel_ == channel && (announced_ || open_);
  }

  /// abort() does nothing from now on (a known bad variant).
  void keepWhenAborted(bool keep) { keeps_ = keep; }

  /// Nothing leaves for a while; whoever waits can be interrupted.
  void stall(Duration time);
  /// An engine did something: a waiting function may be able to go on.
  void look();
  /// An engine's process is gone, and with it its end of the channel.
  void engineGone(std::size_t engine);

  /// Whether a put or a flush has begun and is not yet done.
  [[nodiscard]] bool leaving() const { return leaving_ > 0; }

  [[nodiscard]] std::string waitsFor() const { return wait_ ? wait_->name : ""; }

  [[nodiscard]] TransportKind kind() const override {
    return chunks_ == nullptr ? TransportKind::kTcp : TransportKind::kShm;
  }

  Result<std::vector<std::string>> announce(const ChannelSpec& spec) override;
  [[nodiscard]] bool ready() const override;
  Status open(Deadline deadline) override;
  Result<std::string> updateInfo(const Manifest& manifest) override;
  Status begin(const Manifest& manifest) override;
  Status put(const TensorSpec& spec, const TensorView& view, Deadline deadline) override;
  Status flush(Deadline deadline) override;
  void interrupt(const Status& reason) noexcept override;
  void abort(const Status& reason) noexcept override;

  [[nodiscard]] std::uint64_t bytesSent(std::size_t engine) const override {
    return bytes_.size() > engine ? bytes_[engine] : 0;
  }

  [[nodiscard]] std::uint64_t casts() const override { return 0; }

  [[nodiscard]] std::uint64_t bufferBytes() const override { return 0; }

  [[nodiscard]] std::uint64_t inFlightBytes() const override { return 0; }

  void releaseBuffers() override {}

 private:
  struct Wait {
    std::string name;
    std::function<bool()> possible;
    std::function<void()> act;
    Done done;
    Executor::TimerId timer = 0;
  };

  void join(const std::vector<std::string>& engines);
  void wait(Wait wait, Deadline deadline);
  void end(const Status& status);
  void send(std::size_t tensor, int content, Deadline deadline, Done done);
  void putInRun(std::size_t tensor, int content, Deadline deadline, Done done);
  void endRun(Deadline deadline, Done done);
  [[nodiscard]] Status gone() const;

  Executor& executor_;
  Pace& pace_;
  std::vector<FakeEngine*> engines_;
  SimChunks* chunks_;
  std::vector<FakeEngine*> members_;  ///< of the channel, in its order
  std::vector<std::uint64_t> bytes_;
  std::uint64_t channel_;
  bool keeps_ = false;
  bool announced_ = false;
  bool open_ = false;
  std::optional<std::size_t> gone_;
  Status interrupted_;
  std::optional<Wait> wait_;
  TimePoint stalledUntil_{};
  int leaving_ = 0;

  std::optional<int> rank_;  ///< with several sources
  int source_ = 0;           ///< its place among them, -1: none
  std::vector<transports::OwnerRun> runs_;
  std::size_t run_ = 0;
  std::map<std::string, std::size_t> answers_;  ///< on rank 0: runs that engines have answered
};

}  // namespace pushrod::sim
