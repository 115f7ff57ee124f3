// SPDX-License-Identifier: Apache-2.0
#include "ranks/run_id.h"

#include "common/ids.h"

namespace pushrod::ranks {

namespace {

constexpr char kRefusal = '!';

std::string helloKey(const std::string& base, const std::string& run, int rank) {
  return base + "/" + run + "/hello/" + std::to_string(rank);
}

std::string welcomeKey(const std::string& base, const std::string& run, int rank) {
  return base + "/" + run + "/welcome/" + std::to_string(rank);
}

Status sizesDiffer(int size, int other, const std::string& theirs) {
  return Status(Code::kInvalidArgument,
                "rank 0 was started as one of " + std::to_string(size) + " ranks, rank " +
                    std::to_string(other) + " as one of " + theirs +
                    "; start all ranks of a job with the same number");
}

/// What rank 0 has left to do.
struct Greeter {
  Store& store;
  const std::string& base;
  const std::string& run;
  int size;
  std::vector<int> missing;

  /// Greets those who said hello since the last look.
  Status look(Deadline deadline) {
    std::vector<std::string> keys;
    for (const int rank : missing) {
      keys.push_back(helloKey(base, run, rank));
    }
    const auto hellos = store.get(keys, deadline);
    if (!hellos) {
      return hellos.status();
    }
    std::vector<int> still;
    for (std::size_t i = 0; i < missing.size(); ++i) {
      const auto& hello = (*hellos)[i];
      if (!hello) {
        still.push_back(missing[i]);
        continue;
      }
      const Status greeted = greet(missing[i], *hello, deadline);
      if (!greeted) {
        return greeted;
      }
    }
    missing = std::move(still);
    return Status();
  }

  Status greet(int rank, const std::string& hello, Deadline deadline) {
    const std::string theirs = hello.substr(std::min(hello.find(' '), hello.size() - 1) + 1);
    if (theirs == std::to_string(size)) {
      return store.set(welcomeKey(base, run, rank), hello, deadline);
    }
    const Status refusal = sizesDiffer(size, rank, theirs);
    const Status told =
        store.set(welcomeKey(base, run, rank), kRefusal + refusal.message(), deadline);
    return told.ok() ? refusal : told;
  }
};

Result<std::string> lead(
    Store& store, const std::string& base, int size, Interrupt& interrupt, Deadline deadline) {
  const std::string run = common::toHex(common::randomId());
  const auto old = store.get({base + "/run"}, deadline);
  if (!old) {
    return old.status();
  }
  if (old->front()) {
    const Status erased = store.eraseBelow(base + "/" + *old->front(), deadline);
    if (!erased) {
      return erased;
    }
  }
  const Status set = store.set(base + "/run", run, deadline);
  if (!set) {
    return set;
  }
  Greeter greeter{store, base, run, size, {}};
  for (int rank = 1; rank < size; ++rank) {
    greeter.missing.push_back(rank);
  }
  PollPause pause;
  while (!greeter.missing.empty()) {
    Status status = greeter.look(deadline);
    if (status.ok() && !greeter.missing.empty()) {
      status = pause.wait(interrupt, deadline);
    }
    if (status.code() == Code::kDeadlineExceeded) {
      return Status(Code::kDeadlineExceeded,
                    rankList(greeter.missing) + " of " + std::to_string(size) +
                        " did not come to the ranks' store " + store.describe() + " in time");
    }
    if (!status) {
      return status;
    }
  }
  return run;
}

/// A failure in waiting for rank 0, in words if it is the limit that ended it.
Status late(const Status& status, const Store& store) {
  if (status.code() != Code::kDeadlineExceeded) {
    return status;
  }
  return Status(Code::kDeadlineExceeded,
                "rank 0 did not come to the ranks' store " + store.describe() + " in time");
}

Result<std::string> follow(Store& store,
                           const std::string& base,
                           const Rank& rank,
                           Interrupt& interrupt,
                           Deadline deadline) {
  const std::string hello = common::toHex(common::randomId()) + " " + std::to_string(rank.size);
  std::string run;
  PollPause pause;
  while (true) {
    const auto seen = store.get({base + "/run", welcomeKey(base, run, rank.rank)}, deadline);
    if (!seen) {
      return late(seen.status(), store);
    }
    const auto& current = seen->front();
    const auto& welcome = seen->back();
    if (!run.empty() && welcome == hello) {
      // Rank 0 has read both: nobody needs them any more.
      const Status erased =
          store.erase({helloKey(base, run, rank.rank), welcomeKey(base, run, rank.rank)}, deadline);
      return erased.ok() ? Result<std::string>(run) : erased;
    }
    if (!run.empty() && welcome && welcome->front() == kRefusal) {
      return Status(Code::kInvalidArgument, welcome->substr(1));
    }
    if (current && *current != run) {
      run = *current;
      const Status said = store.set(helloKey(base, run, rank.rank), hello, deadline);
      if (!said && said.code() != Code::kUnavailable) {
        return said;
      }
      if (!said) {
        // Rank 0 may be removing this dead run's folder at this moment.
        run.clear();
      }
    }
    const Status waited = pause.wait(interrupt, deadline);
    if (!waited) {
      return late(waited, store);
    }
  }
}

}  // namespace

std::string rankList(const std::vector<int>& ranks) {
  constexpr std::size_t kShown = 8;
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size() && i < kShown; ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > kShown) {
    text += " and " + std::to_string(ranks.size() - kShown) + " more";
  }
  return text;
}

Result<std::string> agreeOnRun(Store& store,
                               const std::string& base,
                               const Rank& rank,
                               Interrupt& interrupt,
                               Deadline deadline) {
  if (rank.rank == 0) {
    return lead(store, base, rank.size, interrupt, deadline);
  }
  return follow(store, base, rank, interrupt, deadline);
}

}  // namespace pushrod::ranks
