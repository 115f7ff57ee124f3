// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <pushrod/result.h>

namespace pushrod {

/// Which trainer rank this process is, as its launcher says.
struct Rank {
  int rank = 0;
  int size = 1;
  int localRank = 0;  ///< index among this host's ranks, as far as the launcher tells; else 0
  std::string source =
      "none";  ///< who said so: "arguments", "torchrun", "open_mpi", "slurm", "none"

  /// Reads torchrun's, then Open MPI's, then Slurm's variables (ruling P44). None at all: rank 0
  /// of 1. An empty, odd or contradictory value is refused by name. Reads the environment once; not
  /// thread-safe against setenv.
  static Result<Rank> fromEnvironment();
  /// Given outright. Refused unless 0 <= rank < size.
  static Result<Rank> of(int rank, int size);
};

}  // namespace pushrod
