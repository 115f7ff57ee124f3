// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/ledger/next_call.h"

// The ways to the goals that end a push at an engine: proof, generation, or what a failure leaves.
namespace pushrod::orchestrator {

[[nodiscard]] Next verified(const Ledger& ledger, const PushFacts& facts);
[[nodiscard]] Next resumed(const Ledger& ledger, const PushFacts& facts, const Reply* last);
[[nodiscard]] Next closed(const Ledger& ledger, const PushFacts& facts);

}  // namespace pushrod::orchestrator
