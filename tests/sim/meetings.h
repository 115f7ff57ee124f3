// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <pushrod/agreement.h>
#include <pushrod/executor.h>

#include "tests/sim/fake_engine.h"
#include "tests/sim/random.h"

namespace pushrod::sim {

/// Where all ranks meet: votes, shares and the opening. A rank whose collective failed has left the
/// epoch, and so ends everybody else's, as closed connections do.
class Agreements {
 public:
  struct Result {
    Status status;
    Verdict verdict;
    std::string bytes;              ///< rank 0's
    std::vector<std::string> said;  ///< each rank's
  };

  using Done = std::function<void(Result)>;

  struct Part {
    bool open = false;
    VoteKey key;
    Ballot ballot;
    std::string bytes;
    Done done;
  };

  /// What happens to one rank's part in a vote.
  enum class Trouble : std::uint8_t {
    kNone,
    kLost,   ///< the verdict does not arrive
    kStale,  ///< the record of the vote before arrives in its place
  };

  /// `unkeyed`: records are taken whatever vote they are of (a known bad variant).
  Agreements(Executor& executor, Pace& pace, int ranks, Complain complain, bool unkeyed = false)
      : executor_(executor),
        pace_(pace),
        parts_(static_cast<std::size_t>(ranks)),
        complain_(complain),
        unkeyed_(unkeyed) {
    left_.resize(parts_.size(), false);
    gone_.resize(parts_.size(), false);
  }

  void enter(int rank, Part part, Deadline deadline, Trouble trouble);

  /// Interrupts of earlier pushes are over.
  void beginPush(int rank) { sticky_.erase(static_cast<std::size_t>(rank)); }

  /// Sticky until the rank's next push, whose opening is ended as well if it has not begun.
  void interrupt(int rank, const Status& reason);
  /// The rank's process is gone: its connections close.
  void die(int rank);

  /// "stream, step 3" or "" when the rank waits for no collective.
  [[nodiscard]] std::string waitsFor(int rank) const;

 private:
  struct Waiting {
    bool here = false;
    Trouble trouble = Trouble::kNone;
    Part part;
    Executor::TimerId timer = 0;
  };

  void leave(std::size_t rank, const Status& reason);
  void meetIfAll();
  void end(std::size_t rank, Result result);

  Executor& executor_;
  Pace& pace_;
  std::vector<Waiting> parts_;
  Complain complain_;
  std::vector<bool> left_;
  std::vector<bool> gone_;
  std::map<std::size_t, Status> sticky_;
  Result last_;  ///< what the vote before came to
  bool unkeyed_;
};

/// The trainer's own collectives: nobody leaves one before all are in it.
class Gathers {
 public:
  using Done = std::function<void(const Status&)>;

  Gathers(Executor& executor, Pace& pace, int ranks, Duration watchdog, Complain complain)
      : executor_(executor),
        pace_(pace),
        watchdog_(watchdog),
        waiting_(static_cast<std::size_t>(ranks)),
        complain_(complain) {
    broken_.resize(waiting_.size(), false);
  }

  enum class Way : std::uint8_t { kJoins, kHangs, kThrows };

  /// `deaf`: abort() cannot end it.
  void enter(int rank, const std::string& name, Way way, bool deaf, Done done);
  bool abort(int rank);

  /// What a trainer does after a failed push, before it calls push() again.
  void rebuild() { broken_.assign(broken_.size(), false); }

  [[nodiscard]] std::string waitsFor(int rank) const;

 private:
  struct Waiting {
    std::string name;
    Way way = Way::kJoins;
    bool deaf = false;
    Done done;
    Executor::TimerId timer = 0;
  };

  void end(std::size_t rank, const Status& status);

  Executor& executor_;
  Pace& pace_;
  Duration watchdog_;
  std::vector<Waiting> waiting_;
  std::vector<bool> broken_;
  Complain complain_;
};

}  // namespace pushrod::sim
