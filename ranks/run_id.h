// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <pushrod/rank.h>

#include "ranks/interrupt.h"
#include "ranks/store.h"

namespace pushrod::ranks {

/// Agrees on the id of this run, below the key `base`. Rank 0 invents it and greets every rank that
/// says hello under it; a rank that meets the id of a dead run gets no greeting and looks again.
/// Rank 0 also removes what the dead run left.
class RunAgreement {
 public:
  /// `hostId` goes with the greeting, so that rank 0 learns where every rank lives.
  RunAgreement(std::string base, const Rank& rank, std::string hostId = "");

  /// The id. After a failure it may be called again and goes on where it was: an id that one rank
  /// has taken stays the id of the run. Fails naming the missing ranks, or when ranks disagree
  /// about their number.
  Result<std::string> agree(Store& store, Interrupt& interrupt, Deadline deadline);

  /// Rank 0, once agreed: every rank's host id, by rank; empty where a rank has none.
  [[nodiscard]] const std::vector<std::string>& hostIds() const { return hostIds_; }

 private:
  Result<std::string> lead(Store& store, Interrupt& interrupt, Deadline deadline);
  Result<std::string> follow(Store& store, Interrupt& interrupt, Deadline deadline);
  /// Rank 0: removes what a dead run left and publishes the new id.
  Status publish(Store& store, Deadline deadline);
  /// Rank 0: greets those who said hello since the last look.
  Status greetAll(Store& store, Deadline deadline);
  Status greet(Store& store, int rank, const std::string& hello, Deadline deadline);
  [[nodiscard]] std::string helloKey(int rank) const;
  [[nodiscard]] std::string welcomeKey(int rank) const;

  std::string base_;
  int rank_;
  int size_;
  std::string run_;           ///< rank 0: once published; the others: the id they said hello under
  std::vector<int> missing_;  ///< rank 0: not greeted yet
  std::string hello_;         ///< the others: what they say, the same in every try
  std::vector<std::string> hostIds_;  ///< rank 0
};

/// "ranks 1, 4 and 12 more".
[[nodiscard]] std::string rankList(const std::vector<int>& ranks);

}  // namespace pushrod::ranks
