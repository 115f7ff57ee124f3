// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engines/vllm/flow.h"

namespace pushrod::engines::vllm {

/// A call of one request: late replies settled, safe ones repeated. kFlush adds the caches that not
/// every release can reset.
class CallFlow final : public Flow {
 public:
  using Flow::Flow;

  void start() override;

 private:
  void sendReal();
  void onReal(const Result<http::Response>& result);
  void flushMore(std::size_t index);
  void settleAndFinish();
  [[nodiscard]] bool mayRepeat() const;

  Reply reply_;
};

}  // namespace pushrod::engines::vllm
