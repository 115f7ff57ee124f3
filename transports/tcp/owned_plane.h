// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "transports/owned_streams.h"
#include "transports/owner_runs.h"
#include "transports/tcp/plane.h"

namespace pushrod::transports::tcp {

/// Transport `tcp` with several sources: on a rank that owns tensors it sends those, on rank 0 it
/// also waits for the engines' answers between runs, and elsewhere it does nothing.
class OwnedPlane final : public DataPlane, public OwnedStreams {
 public:
  /// `progress` is timeouts.progress.
  OwnedPlane(int rank, const TransportConfig& config, Duration progress);

  [[nodiscard]] TransportKind kind() const override { return TransportKind::kTcp; }

  /// Refused: several sources announce by invitation.
  Result<std::vector<std::string>> announce(const ChannelSpec& spec) override;
  [[nodiscard]] bool ready() const override;
  Status open(Deadline deadline) override;
  /// Refused: it is one text per run, which plan() gives.
  Result<std::string> updateInfo(const Manifest& manifest) override;
  Status begin(const Manifest& manifest) override;
  Status put(const TensorSpec& spec, const TensorView& view, Deadline deadline) override;
  Status flush(Deadline deadline) override;
  void interrupt(const Status& reason) noexcept override;
  void abort(const Status& reason) noexcept override;

  /// Of a run that another rank sends, its bytes once the engine has answered it.
  [[nodiscard]] std::uint64_t bytesSent(std::size_t engine) const override;

  [[nodiscard]] std::uint64_t casts() const override;

  [[nodiscard]] std::uint64_t bufferBytes() const override { return own_.bufferBytes(); }

  [[nodiscard]] std::uint64_t inFlightBytes() const override { return own_.inFlightBytes(); }

  void releaseBuffers() override { own_.releaseBuffers(); }

  Result<OwnedPass> plan(const Manifest& manifest, const std::vector<int>& owners) override;
  [[nodiscard]] bool hasSources(const std::vector<int>& owners) const override;
  Result<std::string> invite(const ChannelSpec& spec, const std::vector<int>& owners) override;
  std::string join(std::string_view invitation) override;
  Result<std::vector<std::string>> initInfos(const Answers& answers) override;
  Status soundness(const Answers& answers) override;
  void expect(const std::vector<std::string>& engines) override;
  void answered(const std::string& engine, std::size_t runs) override;

 private:
  Status putInRun(const TensorSpec& spec, const TensorView& view, Deadline deadline);
  Status beginRun();
  Status endRun(Deadline deadline);
  /// Rank 0: until every engine has answered the first `runs` runs.
  Status awaitAnswers(std::size_t runs, Deadline deadline);
  [[nodiscard]] Status trouble() const;

  const int rank_;
  const TransportConfig config_;
  TcpPlane own_;
  std::atomic<bool> opened_{false};
  std::atomic<bool> source_{false};  ///< of the channel at hand

  // Rank 0's control thread.
  Roster roster_;
  std::vector<int> sources_;
  std::vector<PlaneEngine> engines_;

  // The pass under way; the caller thread.
  Manifest manifest_;
  std::size_t next_ = 0;
  Status fault_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Status interrupted_;
  std::map<std::string, std::size_t> answers_;  ///< runs that each expected engine has answered
  std::vector<OwnerRun> runs_;
  std::vector<std::uint64_t> runBytes_;
  std::size_t run_ = 0;
  std::vector<std::uint64_t> ownBytes_;  ///< per engine, of the runs sent here before this one
  std::vector<std::uint64_t> workers_;   ///< per engine
  std::vector<std::string> names_;       ///< per engine
  bool running_ = false;                 ///< a run of this rank has begun and not ended
  std::uint64_t casts_ = 0;              ///< of ended runs, and on rank 0 of the other sources'
};

}  // namespace pushrod::transports::tcp
