// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engines/vllm/flow.h"

namespace pushrod::engines::vllm {

/// Measures the reply lag of an engine's workers; 0 without any request where there can be none.
class LagFlow final : public Flow {
 public:
  using Flow::Flow;

  void start() override;
};

}  // namespace pushrod::engines::vllm
