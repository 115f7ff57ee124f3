// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <pushrod/agreement.h>
#include <pushrod/config.h>
#include <pushrod/log_sink.h>
#include <pushrod/rank.h>
#include <pushrod/rank_link.h>

namespace pushrod::net {
class IoExecutor;
}

namespace pushrod::ranks {

class Gather;
class Link;
class RecordExchange;

struct RanksOptions {
  Rank rank;
  RanksConfig config;
  std::string job;
  std::string privateDirectory;  ///< for store `auto`: a folder that this host's ranks share
  std::string hostId;            ///< what tells this rank's host from others
  Duration connect{60000};       ///< longest wait for the others in the first open()
  Duration agreement{60000};     ///< longest silence of a rank that lives
};

/// A rank's connections to the others: votes, link and, on demand, gathers. Owned by the caller's
/// thread; the executor and the sink outlive it. SIGPIPE is ignored from create() on where the
/// process has not said otherwise, since Gloo's writes would end it.
class Ranks {
 public:
  /// Checks the options; contacts nobody. The ranks meet in agreement().open().
  static Result<std::unique_ptr<Ranks>> create(net::IoExecutor& executor,
                                               RanksOptions options,
                                               LogSink* log);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// For the caller's thread. open() meets the other ranks: the first time through the store, later
  /// only with ranks whose connections broke. An open that fails here tells the others by the link.
  Agreement& agreement();
  /// For the control thread.
  RankLink& link();
  /// The same object with what rank 0 knows about the others' positions. Control thread.
  Link& linkWithPositions();
  /// The same object as a carrier of flight records. Control thread.
  RecordExchange& records();
  /// A gatherer of its own connections, for the caller's thread; ends before this object.
  std::unique_ptr<Gather> gather();
  /// On rank 0: every rank's host id, by rank. Only after the first open(), which no other thread
  /// may be in.
  [[nodiscard]] const std::vector<std::string>& hostIds() const;
  /// One line: which rank, who said so, where the ranks meet. For the caller's thread.
  [[nodiscard]] std::string describe() const;

  struct Impl;
  explicit Ranks(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace pushrod::ranks
