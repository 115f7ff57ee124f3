// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <pushrod/executor.h>

#include "orchestrator/driver/caller.h"

// Variants of the product with one rule taken out, by decorators over a rank's caller.

namespace pushrod::sim::known_bad {

using CallerPtr = std::unique_ptr<orchestrator::Caller>;

/// Says that bytes have left as soon as they begin to.
CallerPtr votesBeforeBytesLeft(CallerPtr inner, int rank, Executor& executor);

/// Rank 0 resends after the second failure too.
CallerPtr retriesTwice(CallerPtr inner, int rank, Executor& executor);

/// Takes a last vote that broke for a good one.
CallerPtr takesLostVerdictForDone(CallerPtr inner, int rank, Executor& executor);

/// Every rank but 0 takes the confirmation for granted and does not vote on it.
CallerPtr skipsAVote(CallerPtr inner, int rank, Executor& executor);

/// Every rank but 0 reports a cause of its own.
CallerPtr keepsItsOwnCause(CallerPtr inner, int rank, Executor& executor);

}  // namespace pushrod::sim::known_bad
