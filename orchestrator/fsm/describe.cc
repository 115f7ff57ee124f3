// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/fsm/push_table.h"

namespace pushrod::orchestrator {

namespace {

std::string phasesText(PhaseSet set) {
  std::string text;
  std::size_t count = 0;
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    if ((set & only(phase)) != 0) {
      text += (count == 0 ? "" : " ") + std::string(phaseName(phase));
      ++count;
    }
  }
  return count == kPhaseCount ? "any" : text;
}

std::string rowText(const Row& row) {
  std::string target;
  if (row.to != kSamePhase) {
    target = std::string(phaseName(row.to));
    if (row.toStage != Stage::kNone) {
      target += " / " + std::string(stageName(row.toStage));
    }
  } else {
    target = row.toStage == kSameStage ? "stays" : std::string(stageName(row.toStage));
  }
  std::string effects;
  for (const Effect& effect : row.effects) {
    if (effect.apply != nullptr) {
      effects += (effects.empty() ? "" : ", ") + std::string(effect.name);
    }
  }
  return "| " + std::string(row.id) + " | " + phasesText(row.from) + " | " +
         (row.stage == kAnyStage ? std::string("any") : std::string(stageName(row.stage))) + " | " +
         std::string(eventName(row.event)) + " | " + std::string(row.guard.name) + " | " + target +
         " | " + effects + " |\n";
}

}  // namespace

std::string describeTable() {
  std::string text =
      "# The push table\n\n"
      "Generated from `orchestrator/fsm/push_table.cc` by `pushrod_table`; a test compares the "
      "two.\n"
      "The first row that matches phase, stage, event and guard is taken. Effects in lower case\n"
      "change the state only, those with a capital are performed by the driver, \"raise\" feeds "
      "the\n"
      "named event to the table at once.\n\n"
      "| row | from | stage | event | guard | to | effects |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const Row& row : pushTable()) {
    text += rowText(row);
  }
  return text;
}

}  // namespace pushrod::orchestrator
