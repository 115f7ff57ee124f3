// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <pushrod/status.h>

namespace pushrod::tools {

/// A run of bytes of a tensor.
struct Share {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Share&) const = default;
};

/// The part of `total` bytes that `rank` of `size` reads: consecutive, complete, and never more
/// than one byte longer on one rank than on another.
[[nodiscard]] constexpr Share shareOf(std::uint64_t total, int rank, int size) {
  const auto ranks = static_cast<std::uint64_t>(size);
  const auto index = static_cast<std::uint64_t>(rank);
  const std::uint64_t base = total / ranks;
  const std::uint64_t longer = total % ranks;
  return {base * index + std::min(index, longer), base + (index < longer ? 1 : 0)};
}

/// The trainer ranks' own collective, as a checkpoint source needs it.
class ShareGather {
 public:
  ShareGather() = default;
  ShareGather(const ShareGather&) = delete;
  ShareGather& operator=(const ShareGather&) = delete;
  virtual ~ShareGather() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// A collective: on entry `whole` holds this rank's share (shareOf) at its place, after success
  /// every rank's.
  virtual Status gather(std::span<std::byte> whole) = 0;
  /// Ends a gather() under way. Any thread. Returns whether it can.
  virtual bool abort() noexcept = 0;
  /// Makes gather() usable again after a failure, a collective.
  virtual bool recover() = 0;
  /// The same between two pushes, contacting nobody: the next gather() connects anew. Ranks whose
  /// pushes end at different times must not wait for each other outside of one.
  virtual void renew() = 0;
};

/// For a job of one rank: its share is the whole.
class SoloGather final : public ShareGather {
 public:
  [[nodiscard]] int rank() const override { return 0; }

  [[nodiscard]] int size() const override { return 1; }

  Status gather(std::span<std::byte> /*whole*/) override { return {}; }

  bool abort() noexcept override { return true; }

  bool recover() override { return true; }

  void renew() override {}
};

}  // namespace pushrod::tools
