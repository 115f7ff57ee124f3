// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "tests/unit/engines/client_rig.h"

namespace pushrod::engines::vllm {

/// The executor of the contract's 1.6: a call is sent to all workers, replies are read in worker
/// order, and the first failure leaves the later ones unread.
class Workers {
 public:
  struct Answer {
    bool failed = false;
    std::string text;  ///< as it stands in "results", or the error
  };

  explicit Workers(std::size_t count) : queues_(count) {}

  ScriptedReply call(const std::vector<Answer>& answers) {
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      queues_[i].push_back(answers[i]);
    }
    std::string results;
    for (auto& queue : queues_) {
      const Answer front = queue.front();
      queue.pop_front();
      if (front.failed) {
        return workerError(front.text);
      }
      results += (results.empty() ? "" : ",") + front.text;
    }
    return ScriptedReply::json(200, R"({"results":[)" + results + "]}");
  }

  [[nodiscard]] std::vector<Answer> all(const std::string& text) const {
    return std::vector<Answer>(queues_.size(), Answer{false, text});
  }

  [[nodiscard]] std::vector<Answer> ranks() const {
    std::vector<Answer> answers;
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      answers.push_back({false, '"' + std::to_string(i) + '"'});
    }
    return answers;
  }

  ScriptedReply refuseAll(const std::string& text) {
    return call(std::vector<Answer>(queues_.size(), Answer{true, text}));
  }

  [[nodiscard]] int lag() const {
    std::size_t most = 0;
    for (const auto& queue : queues_) {
      most = std::max(most, queue.size());
    }
    return static_cast<int>(most);
  }

 private:
  std::vector<std::deque<Answer>> queues_;
};

}  // namespace pushrod::engines::vllm
