// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/sim_plane.h"
#include "transports/owned_streams.h"

namespace pushrod::sim {

/// A rank's part in a channel of several sources, over its own plane.
class SimSource final : public transports::OwnedStreams {
 public:
  SimSource(int rank, SimPlane& plane, std::uint64_t buffer)
      : rank_(rank), buffer_(buffer), plane_(plane) {}

  Result<transports::OwnedPass> plan(const Manifest& manifest,
                                     const std::vector<int>& owners) override;

  [[nodiscard]] bool hasSources(const std::vector<int>& owners) const override {
    return owners_ == owners;
  }

  Result<std::string> invite(const ChannelSpec& spec, const std::vector<int>& owners) override;
  std::string join(std::string_view invitation) override;
  Result<std::vector<std::string>> initInfos(const transports::Answers& answers) override;
  Status soundness(const transports::Answers& answers) override;

  void expect(const std::vector<std::string>& engines) override { plane_.expect(engines); }

  void answered(const std::string& engine, std::size_t runs) override {
    plane_.answered(engine, runs);
  }

 private:
  int rank_;
  std::uint64_t buffer_;
  SimPlane& plane_;
  std::vector<int> owners_;  ///< on rank 0, of the channel at hand
  std::uint64_t channel_ = 0;
  std::size_t engines_ = 0;
};

}  // namespace pushrod::sim
