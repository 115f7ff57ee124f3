// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transports/chunk_updates.h"

namespace pushrod::sim {

/// One host's shared memory: every tensor is a chunk, and two regions take them in turn. A region
/// holds what was written there last, so that a read that comes too late is seen.
class SimChunks final : public transports::ChunkUpdates {
 public:
  /// `packers`: how many ranks, from 0 on, have such a memory. `impatient`: answers are not waited
  /// for.
  SimChunks(int packers, bool impatient) : packers_(packers), impatient_(impatient) {}

  // The packer.
  void begin() { packed_ = 0; }

  void write(std::size_t tensor, int content);
  /// Whether the next chunk's region may be written.
  [[nodiscard]] bool mayGoOn() const;

  /// The engine: a tensor's content; nullopt when other bytes stand there.
  [[nodiscard]] std::optional<int> read(std::size_t tensor) const;

  /// "chunk 2" as its engine reads it.
  [[nodiscard]] static std::size_t chunkOf(const std::string& body);

  [[nodiscard]] bool takes(const std::string&) const override { return true; }

  Result<transports::ChunkPass> plan(const Manifest& manifest) override;

  Status prepare(const Manifest&, const std::string&) override { return {}; }

  void expect(const std::vector<std::string>& engines) override;

  void answered(const std::string& engine, std::size_t chunks) override {
    answered_[engine] = chunks;
  }

 private:
  struct Region {
    std::size_t tensor = 0;
    int content = 0;
    bool written = false;
  };

  int packers_;
  bool impatient_;
  std::size_t packed_ = 0;
  std::array<Region, 2> regions_;
  std::map<std::string, std::size_t> answered_;
};

}  // namespace pushrod::sim
