// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <pushrod/tensor.h>

#include "common/content_digests.h"
#include "transports/sha256.h"

namespace pushrod::transports {

/// Where a tensor goes in an engine that fuses parameters: q, k, v and gate, up of one module.
struct FusedPlace {
  std::string parameter;  ///< the engine's name
  std::size_t order = 0;  ///< among the parts
  std::size_t parts = 0;
};

/// Empty `parameter`: the name is no part of a fused parameter.
[[nodiscard]] FusedPlace fusedPlace(const std::string& name);

/// SHA-256 of every parameter whose content follows from the stream alone (ruling P22): tensors
/// whose name stays, and fused ones whose parts all are in the manifest. Parts that come before
/// their turn are kept, within a budget; a parameter that does not fit it has no digest. Nor has an
/// embedding that engines pad. One object per pass; not thread-safe.
class ContentHasher {
 public:
  static constexpr std::uint64_t kBudget = std::uint64_t{512} << 20U;

  explicit ContentHasher(const Manifest& manifest, std::uint64_t budget = kBudget);
  ContentHasher(const ContentHasher&) = delete;
  ContentHasher& operator=(const ContentHasher&) = delete;

  /// One tensor of the pass, in host memory and checked against `spec` before.
  void add(const TensorSpec& spec, const TensorView& view);
  /// The digests of all parameters that are complete.
  [[nodiscard]] common::ContentDigests finish();

 private:
  struct Group {
    Sha256 digest;
    std::size_t next = 0;  ///< the part that is hashed next
    std::size_t parts = 0;
    std::map<std::size_t, std::vector<std::byte>> kept;
    bool given = true;  ///< false: it takes no more
  };

  void addPart(const std::string& parameter,
               std::size_t order,
               const TensorSpec& spec,
               const TensorView& view);
  void keep(Group& group, std::size_t order, const TensorSpec& spec, const TensorView& view);
  void giveUp(Group& group);

  std::uint64_t budget_;
  std::map<std::string, Group> groups_;  ///< fused parameters whose parts all come
  common::ContentDigests digests_;
  std::vector<std::byte> scratch_;
};

}  // namespace pushrod::transports
