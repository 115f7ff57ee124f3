// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/fsm/push_table.h"

namespace pushrod::orchestrator {

/// A push state together with what is outstanding around it: everything that decides which events
/// can come next.
struct Situation {
  PushState state;
  ActionKind operation = ActionKind::kFinish;  ///< of the caller, when state.callerBusy
  bool ballotOk = true;                        ///< this rank's part in the vote that is under way
  bool ballotStopped = false;                  ///< it said that the source yields nothing more
  bool drainArmed = false;
  bool finished = false;
};

/// Walks every situation of one rank that a legal order of events can bring about: completions only
/// for what is outstanding, trouble at any time.
class TableExplorer {
 public:
  struct Edge {
    std::size_t from = 0;
    std::size_t to = 0;
    std::string text;
    bool completion = false;  ///< of something outstanding, as opposed to trouble
    bool progress = false;    ///< a collective, a tensor or an attempt more
    bool gather = false;      ///< asks the caller for a gather
  };

  /// `stopAtEnd`: push.stop: pass; `draft`: the push carries the draft model as well.
  TableExplorer(bool leader, bool stopAtEnd, bool draft);
  void run();

  [[nodiscard]] const std::vector<Situation>& situations() const { return situations_; }

  [[nodiscard]] const std::vector<Edge>& edges() const { return edges_; }

  [[nodiscard]] const std::set<std::string_view>& rows() const { return rows_; }

  /// Broken promises of single transitions, each with the way that led there.
  [[nodiscard]] const std::vector<std::string>& faults() const { return faults_; }

  [[nodiscard]] std::string describe(std::size_t index) const;

 private:
  void expand(std::size_t index);
  void take(std::size_t index, const Event& event, const std::string& text, bool completion);
  [[nodiscard]] std::string checkActions(const Situation& before, const StepResult& result) const;
  std::size_t add(const Situation& situation, std::size_t parent, const std::string& text);
  [[nodiscard]] std::string way(std::size_t index) const;

  bool draft_;
  std::vector<Situation> situations_;
  std::vector<std::pair<std::size_t, std::string>> parents_;
  std::map<std::string, std::size_t> index_;
  std::vector<Edge> edges_;
  std::set<std::string_view> rows_;
  std::vector<std::string> faults_;
};

}  // namespace pushrod::orchestrator
