// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/fault_plan.h"

#include <array>

namespace pushrod::sim {

namespace {

constexpr std::array<std::string_view, kFaultKinds> kNames = {"none",
                                                              "refused",
                                                              "4xx",
                                                              "5xx-before",
                                                              "5xx-after",
                                                              "lost-reply",
                                                              "lost-request",
                                                              "restart",
                                                              "dead",
                                                              "throws",
                                                              "hangs",
                                                              "hangs-deaf",
                                                              "ends-early",
                                                              "mismatch",
                                                              "plane-fails",
                                                              "verdict-lost",
                                                              "rank-dies",
                                                              "rank-stops",
                                                              "cancel"};

}  // namespace

std::string_view faultName(FaultKind kind) {
  return kNames.at(static_cast<std::size_t>(kind));
}

std::optional<FaultKind> faultFromName(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames.at(i) == name) {
      return static_cast<FaultKind>(i);
    }
  }
  return std::nullopt;
}

std::optional<Seam> seamOf(FaultKind kind) {
  if (kind >= FaultKind::kRefused && kind <= FaultKind::kDead) {
    return Seam::kEngine;
  }
  if (kind >= FaultKind::kThrows && kind <= FaultKind::kMismatch) {
    return Seam::kSource;
  }
  if (kind == FaultKind::kPlaneFails) {
    return Seam::kPlane;
  }
  return kind == FaultKind::kVerdictLost ? std::optional(Seam::kVote) : std::nullopt;
}

std::string FaultPlan::replay() const {
  return "pushrod_sim --ranks " + std::to_string(ranks) + " --engines " + std::to_string(engines) +
         " --kind " + std::string(faultName(kind)) + " --k " + std::to_string(k) +
         (victim == 0 ? "" : " --victim " + std::to_string(victim)) +
         (second == FaultKind::kNone ? ""
                                     : " --second " + std::string(faultName(second)) +
                                           " --second-k " + std::to_string(secondK)) +
         (oldProfile ? " --old-profile" : "") + (quarantine ? " --quarantine" : "") +
         (chunked ? " --chunked" : "") + (pass ? " --pass" : "");
}

}  // namespace pushrod::sim
