// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <pushrod/rank.h>

#include "ranks/interrupt.h"
#include "ranks/store.h"

namespace pushrod::ranks {

/// Agrees on the id of this run, below the key `base`. Rank 0 invents it and greets every rank that
/// says hello under it; a rank that meets the id of a dead run gets no greeting and looks again.
/// Rank 0 also removes what the dead run left. Fails naming the missing ranks, or when ranks
/// disagree about their number.
Result<std::string> agreeOnRun(Store& store,
                               const std::string& base,
                               const Rank& rank,
                               Interrupt& interrupt,
                               Deadline deadline);

/// "ranks 1, 4 and 12 more".
[[nodiscard]] std::string rankList(const std::vector<int>& ranks);

}  // namespace pushrod::ranks
