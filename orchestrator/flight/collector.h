// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <pushrod/executor.h>
#include <pushrod/rank.h>

#include "ranks/record_exchange.h"

namespace pushrod::orchestrator {

/// Brings the ranks' parts of a flight record to rank 0 after a push that failed or recovered.
/// The others send theirs as their push ends and stay until rank 0 has them; rank 0 asks those that
/// it can reach and has not heard. Nobody waits longer than kLimit. Where rank 0 is gone, rank 1
/// has its own part only. Control thread only.
class FlightCollector final : public ranks::RecordListener {
 public:
  static constexpr Duration kLimit{500};

  /// What this rank is to write.
  struct Parts {
    std::map<int, std::string> records;  ///< lines by rank
    std::map<int, std::string> missing;  ///< why a rank has none
  };

  /// nullopt: another rank writes.
  using Done = std::function<void(std::optional<Parts>)>;
  /// This rank's part of the running or last push, at most so many bytes.
  using Own = std::function<std::string(std::size_t budget)>;

  FlightCollector(Executor& executor, ranks::RecordExchange& exchange, const Rank& rank, Own own);
  ~FlightCollector() override;

  /// Most bytes of one rank's part in a job of `ranks`: a rank relays those of others too.
  [[nodiscard]] static std::size_t budget(int ranks);

  /// Push `epoch` begins: what is left of earlier ones means nothing any more.
  void begin(std::uint64_t epoch);
  /// The push failed or recovered. `done` is called once, never inline.
  void collect(Done done);
  /// The push ended otherwise: nothing is collected, and nobody waits for this rank.
  void skip();
  /// Ends a collection that goes on, with what is there.
  void cut();

  void onRecordAsked(std::uint64_t epoch) override;
  void onRecordPart(const ranks::RecordPart& part) override;
  void onRecordEnded(std::uint64_t epoch) override;
  void onRankGone(int rank) override;

 private:
  struct Part {
    std::string text;
    std::uint32_t next = 0;
    bool whole = false;
    bool refused = false;
  };

  void send();
  void endIfComplete();
  void end();
  [[nodiscard]] std::optional<Parts> take();
  [[nodiscard]] std::string whyMissing(int rank) const;

  Executor& executor_;
  ranks::RecordExchange& exchange_;
  const int rank_;
  const int size_;
  Own own_;
  std::uint64_t epoch_ = 0;
  bool sent_ = false;
  bool ended_ = false;  ///< rank 0 has said so
  std::map<int, Part> parts_;
  std::set<int> gone_;
  Done done_;  ///< set: it goes on
  Executor::TimerId timer_ = 0;
};

}  // namespace pushrod::orchestrator
