// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <pushrod/executor.h>

#include "engines/vllm/routes.h"
#include "http/client.h"
#include "metrics/push_metrics.h"

namespace pushrod::engines::vllm {

/// Told about every finished HTTP request, the liveness probes included: label, result, seconds.
using RequestObserver =
    std::function<void(std::string_view label, metrics::RequestResult result, double seconds)>;

/// One request at a time to one engine, watched (ruling P20): an engine core that dies leaves its
/// calls unanswered for ever, so beside a request that is out for longer than 2 s GET /health is
/// asked on a second client every 2 s, for at most 2 s each. Refused, or 503, twice ends the
/// request as unavailable, outcome unknown. An unanswered probe says nothing: a slow engine answers
/// late. Control thread only; destroying it drops what is out.
class Wire {
 public:
  using Done = std::function<void(Result<http::Response>)>;

  static constexpr Duration kProbeEvery = std::chrono::seconds(2);
  static constexpr Duration kProbeLimit = std::chrono::seconds(2);
  static constexpr int kStrikes = 2;

  Wire(Executor& executor,
       std::unique_ptr<http::Client> calls,
       std::unique_ptr<http::Client> probes,
       RequestObserver observer);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  /// Precondition: nothing is out. `done` fires once, never inline.
  void send(const EngineRequest& request, Deadline deadline, Done done);
  /// Ends what is out; its `done` never fires. Returns whether a request was out.
  bool abandon(const Status& reason);

  /// Whether the last request was ended because the engine is gone.
  [[nodiscard]] bool foundDead() const { return foundDead_; }

 private:
  void onAnswer(Result<http::Response> result);
  void armProbe(TimePoint when);
  void probe();
  void onProbe(const Result<http::Response>& result, TimePoint sentAt);
  void stopProbing();
  void observe(std::string_view label, const Result<http::Response>& result, TimePoint since);

  Executor& executor_;
  RequestObserver observer_;
  Done done_;
  std::uint64_t serial_ = 0;  ///< of the last request: an abandoned one's answer is dropped
  http::Client::Id id_ = 0;
  Executor::TimerId refusal_ = 0;  ///< answers a request whose deadline had passed
  Executor::TimerId timer_ = 0;
  http::Client::Id probeId_ = 0;
  bool probeOut_ = false;
  std::uint64_t probeSerial_ = 0;
  int strikes_ = 0;
  std::string lastProbe_;
  bool foundDead_ = false;
  // Last members: destroyed first, so that no callback reaches a half-destroyed object.
  std::unique_ptr<http::Client> calls_;
  std::unique_ptr<http::Client> probes_;
};

}  // namespace pushrod::engines::vllm
