// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pushrod::sim {

/// Tensors that are fused into one layer.
inline constexpr std::size_t kPerLayer = 2;
/// Content of a tensor: the number of the push that sent it; 0: as started.
inline constexpr int kTorn = -1;

/// What stands for the SHA-256 of a tensor.
[[nodiscard]] inline std::string digestOf(int content) {
  return std::to_string(content);
}

/// The weights of one model in an engine, by the rules of the contract: a layer is done when the
/// number of elements it got reaches its total, and counters of an interrupted layer survive into
/// the next session unless an empty one clears them.
class FakeModel {
 public:
  /// `tensors` is a multiple of kPerLayer.
  explicit FakeModel(std::size_t tensors)
      : weights_(tensors, 0), counters_(tensors / kPerLayer, 0), pieces_(tensors, kTorn) {}

  [[nodiscard]] std::size_t tensors() const { return weights_.size(); }

  [[nodiscard]] const std::vector<int>& weights() const { return weights_; }

  /// The engine's process starts.
  void boot();
  /// A session of an earlier run was left open, a layer half loaded.
  void leaveHalf();
  void begin();
  void load(std::size_t tensor, int content);
  void finish();

  /// It holds other values than it was sent.
  void corrupt() { weights_.front() = kTorn; }

  /// Whether every tensor is of one push and none is a placeholder.
  [[nodiscard]] bool whole() const;

  /// The push whose content it holds, kTorn when mixed.
  [[nodiscard]] int content() const { return whole() ? weights_.front() : kTorn; }

 private:
  bool placeholders_ = false;  ///< from start until a good finish: serving would kill it
  std::vector<int> weights_;
  std::vector<std::size_t> counters_;  ///< by layer
  std::vector<int> pieces_;            ///< of this session
};

}  // namespace pushrod::sim
