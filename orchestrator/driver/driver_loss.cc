// SPDX-License-Identifier: Apache-2.0
// Engines that a push goes on without (ruling P1). Who is left out, and how the rest goes on, is
// decide's; here it is done.
#include <algorithm>
#include <utility>

#include "orchestrator/driver/push_driver.h"

namespace pushrod::orchestrator {

DecideInput PushDriver::decideInput() const {
  const EnginesConfig& engines = parts_.config.engines;
  DecideInput input;
  input.phase = state_.phase;
  input.attempt = state_.attempt;
  input.draftComes = state_.draftComes();
  input.resendAllowed = parts_.config.push.resend;
  input.timeLeft = !workDeadline_.passed(parts_.executor);
  input.quarantine = engines.onLoss == OnLoss::kQuarantine;
  input.minHealthy = healthyNeeded(engines.minHealthy, runner_.slots().size());
  input.engines = runner_.stands();
  return input;
}

/// Whether the goal that failed with `status` is reached by the engines that count. Not where
/// somebody else's failure ended it: that is for the vote.
bool PushDriver::goOnWithout(Status& status) {
  if (state_.phase == Phase::kFailing) {
    return false;
  }
  DecideInput input = decideInput();
  input.enginesAlone = !runner_.cancelled() && state_.local.ok() && state_.pending.ok();
  const Ruling ruling = decide(input, status);
  if (ruling.tooFew) {
    status.addNote("without it fewer engines would remain than engines.min_healthy wants (" +
                   std::to_string(input.minHealthy) + " of " +
                   std::to_string(input.engines.size()) + ")");
  }
  if (ruling.decision != Decision::kGo) {
    return false;
  }
  dropEngines(ruling.withoutEngines);
  return true;
}

void PushDriver::dropEngines(const std::vector<std::size_t>& engines) {
  if (engines.empty()) {
    return;
  }
  bool inChannel = false;
  for (const std::size_t i : engines) {
    const EngineSlot& slot = runner_.slots()[i];
    inChannel = inChannel || announced_ || slot.ledger.channel == ChannelState::kReady;
    const Status cause = slot.ledger.error;
    runner_.drop(i, capped(parts_.config.timeouts.shutdown));
    dropNotes_.push_back("engine " + slot.client->name() + " is left out: " + cause.toString());
    parts_.observer.onDropped(i, state_.phase, cause);
    parts_.observer.onEngine(i, slot.ledger);
  }
  if (inChannel) {
    // Its place in the channel cannot be given up alone; the others' next update needs a new one.
    abortChannel(Status(Code::kAborted, "the channel is built anew without an engine"));
  }
}

/// A good push has reached and verified every engine that it did not drop.
void PushDriver::readmit() {
  if (state_.phase != Phase::kDone) {
    return;
  }
  for (std::size_t i = 0; i < runner_.slots().size(); ++i) {
    Ledger& ledger = runner_.slots()[i].ledger;
    if (ledger.quarantined && !ledger.dropped) {
      ledger.quarantined = false;
      parts_.observer.onEngine(i, ledger);
    }
  }
}

}  // namespace pushrod::orchestrator
