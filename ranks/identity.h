// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <pushrod/rank.h>

namespace pushrod::ranks {

/// Reads one environment variable; nullopt when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// The process' own environment. Not thread-safe against setenv.
[[nodiscard]] Environment processEnvironment();

/// Which rank the launcher says this process is: torchrun's variables, else Open MPI's, else those
/// of Slurm's step, else rank 0 of 1. A value that is empty, odd, missing beside its partner or
/// contradictory is refused by its name, never taken as 0.
Result<Rank> rankFromEnvironment(const Environment& environment);

/// What tells this rank's host from others: PUSHROD_HOST_ID where it is set, else the kernel's boot
/// id. An odd value of the variable is refused.
Result<std::string> hostIdFromEnvironment(const Environment& environment);

}  // namespace pushrod::ranks
