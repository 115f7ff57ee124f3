// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engines/vllm/flow.h"

namespace pushrod::engines::vllm {

/// Reads whether a weight-update session is open (ruling P16 a): the flag in every worker, by a
/// read that cannot fail there. Where the server does not let it be read, one worker gets a
/// versionless finish whose refusal is as good an answer, and leaves no session either way; several
/// workers would be harmed by that refusal, so that the engine is lost.
class SessionFlow final : public Flow {
 public:
  using Flow::Flow;

  void start() override;

 private:
  void readFlag();
  void onFlag(const Result<http::Response>& result);
  void onUnreadable(const Status& why);

  int readsLeft_ = 1;  ///< with late replies only the last of several equal reads is this one's
};

}  // namespace pushrod::engines::vllm
