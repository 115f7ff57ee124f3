// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <pushrod/result.h>
#include <pushrod/tensor.h>

namespace pushrod::transports {

/// XXH3-64 of one rank's copy of a tensor (push.check_replicas), over the bytes that are or would
/// be sent. Not thread-safe.
class CopyDigest {
 public:
  CopyDigest();
  ~CopyDigest();
  CopyDigest(const CopyDigest&) = delete;
  CopyDigest& operator=(const CopyDigest&) = delete;

  /// The view was checked against `spec` before. Refuses (invalidArgument) device memory.
  Result<std::uint64_t> of(const TensorSpec& spec, const TensorView& view);

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::vector<std::byte> scratch_;
};

}  // namespace pushrod::transports
