// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <pushrod/agreement.h>
#include <pushrod/executor.h>

#include "tests/sim/fake_engine.h"

namespace pushrod::sim {

/// Where all ranks meet: votes, shares and the opening. A rank whose collective failed has left the
/// epoch, and so ends everybody else's, as closed connections do.
class Agreements {
 public:
  struct Result {
    Status status;
    Verdict verdict;
    std::string bytes;
  };

  using Done = std::function<void(Result)>;

  struct Part {
    bool open = false;
    VoteKey key;
    Ballot ballot;
    std::string bytes;
    Done done;
  };

  /// `lose` tells whether this vote's verdict is lost on its way to the rank.
  Agreements(Executor& executor, int ranks, Complain complain)
      : executor_(executor), parts_(static_cast<std::size_t>(ranks)), complain_(complain) {
    left_.resize(parts_.size(), false);
    gone_.resize(parts_.size(), false);
  }

  void enter(int rank, Part part, Deadline deadline, bool loseVerdict);
  void interrupt(int rank, const Status& reason);
  /// The rank's process is gone: its connections close.
  void die(int rank);

  /// "stream, step 3" or "" when the rank waits for no collective.
  [[nodiscard]] std::string waitsFor(int rank) const;

 private:
  struct Waiting {
    bool here = false;
    bool lose = false;
    Part part;
    Executor::TimerId timer = 0;
  };

  void leave(std::size_t rank, const Status& reason);
  void meetIfAll();
  void end(std::size_t rank, Result result);

  Executor& executor_;
  std::vector<Waiting> parts_;
  Complain complain_;
  std::vector<bool> left_;
  std::vector<bool> gone_;
  std::map<std::size_t, Status> sticky_;
};

/// The trainer's own collectives: nobody leaves one before all are in it.
class Gathers {
 public:
  using Done = std::function<void(const Status&)>;

  Gathers(Executor& executor, int ranks, Duration watchdog, Complain complain)
      : executor_(executor),
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
  Duration watchdog_;
  std::vector<Waiting> waiting_;
  std::vector<bool> broken_;
  Complain complain_;
};

}  // namespace pushrod::sim
