// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include <pushrod/weight_source.h>

namespace pushrod::tools {

/// The source of a rank that has nothing to push, so that the other ranks learn why from the push
/// itself and need not wait for a rank that never comes.
class RefusedSource final : public WeightSource {
 public:
  explicit RefusedSource(Status why) : why_(std::move(why)) {}

  Result<Manifest> manifest() override { return why_; }

  Status begin() override { return why_; }

  Result<std::optional<TensorView>> next() override { return why_; }

 private:
  Status why_;
};

}  // namespace pushrod::tools
