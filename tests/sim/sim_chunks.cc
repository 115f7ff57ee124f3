// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_chunks.h"

#include <algorithm>

#include "tests/sim/fake_engine.h"

namespace pushrod::sim {

namespace {

constexpr std::string_view kBody = "chunk ";

}  // namespace

void SimChunks::write(std::size_t tensor, int content) {
  regions_.at(tensor % regions_.size()) = Region{tensor, content, true};
  packed_ = tensor + 1;
}

bool SimChunks::mayGoOn() const {
  if (impatient_ || packed_ == kTensors || packed_ < regions_.size()) {
    return true;
  }
  const std::size_t wanted = packed_ - regions_.size() + 1;
  return std::all_of(answered_.begin(), answered_.end(), [wanted](const auto& entry) {
    return entry.second >= wanted;
  });
}

std::optional<int> SimChunks::read(std::size_t tensor) const {
  const Region& region = regions_.at(tensor % regions_.size());
  return region.written && region.tensor == tensor ? std::optional(region.content) : std::nullopt;
}

std::size_t SimChunks::chunkOf(const std::string& body) {
  return std::stoull(body.substr(kBody.size()));
}

Result<transports::ChunkPass> SimChunks::plan(const Manifest& manifest) {
  transports::ChunkPass pass;
  pass.unique = "sim";
  for (int rank = 0; rank < packers_; ++rank) {
    pass.packers.push_back(rank);
  }
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i) {
    pass.ends.push_back(i + 1);
    pass.bodies.push_back(
        std::make_shared<const std::string>(std::string(kBody) + std::to_string(i)));
  }
  return pass;
}

void SimChunks::expect(const std::vector<std::string>& engines) {
  answered_.clear();
  for (const std::string& engine : engines) {
    answered_[engine] = 0;
  }
}

}  // namespace pushrod::sim
