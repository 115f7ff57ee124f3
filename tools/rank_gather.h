// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <pushrod/config.h>
#include <pushrod/rank.h>
#include <pushrod/result.h>

#include "tools/sources/share_gather.h"

namespace pushrod::tools {

/// The gather of a job's ranks, over a store connection of its own. Nothing is connected before the
/// first gather(), so a refused push makes no group. `privateStore`: as in CoordinatorOptions.
Result<std::unique_ptr<ShareGather>> makeRankGather(const Config& config,
                                                    const Rank& rank,
                                                    const std::string& privateStore);

}  // namespace pushrod::tools
