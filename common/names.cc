// SPDX-License-Identifier: Apache-2.0
// Texts of the public enumerations that have no folder of their own.
#include <array>

#include <pushrod/agreement.h>
#include <pushrod/data_plane.h>
#include <pushrod/engine_client.h>
#include <pushrod/report.h>

namespace pushrod {

std::string_view transportName(TransportKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"nccl", "ipc", "tcp", "shm", "mixed"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view callName(CallKind kind) {
  constexpr std::array<std::string_view, kCallKindCount> kNames = {
      "identify",
      "measure_lag",
      "is_paused",
      "read_session",
      "weight_info",
      "pause",
      "resume",
      "update_weight_version",
      "shutdown_weight_transfer_engine",
      "init_weight_transfer_engine",
      "start_weight_update",
      "update_weights",
      "finish_weight_update",
      "reset_prefix_cache",
      "weight_checker",
      "wake_up"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view pushOutcomeName(PushOutcome outcome) {
  constexpr std::array<std::string_view, 4> kNames = {"done", "recovered", "failed", "refused"};
  return kNames.at(static_cast<std::size_t>(outcome));
}

std::string VoteKey::toString() const {
  return "push " + std::to_string(epoch) + ", attempt " + std::to_string(attempt) + ", " +
         std::string(phaseName(phase)) + ", " + stepText();
}

std::string VoteKey::stepText() const {
  return "step " + std::to_string(step % kDraftStep) + (ofDraft() ? " of the draft model" : "");
}

}  // namespace pushrod
