// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <pushrod/engine_client.h>

#include "engines/vllm/engine_state.h"
#include "engines/vllm/lag_meter.h"

namespace pushrod::engines::vllm {

/// One call from its first request to its Reply. A flow ends by exactly one finish(), or is
/// destroyed after the wire was told to abandon its request.
class Flow {
 public:
  using Finished = std::function<void(Reply)>;

  /// Sent again at most so often, after these pauses, when nobody answered or asked for a later
  /// try.
  static constexpr int kMaxRepeats = 3;

  Flow(EngineState& state, Call call, Deadline deadline, Finished finished);
  virtual ~Flow();
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  virtual void start() = 0;

 protected:
  using Then = std::function<void(Status)>;
  using Answered = std::function<void(Result<http::Response>)>;

  /// Sends; the answer's body is freed of what the call's body holds secret.
  void send(const EngineRequest& request, Deadline deadline, Answered answered);
  /// As send, repeating while the answer is transient, at most kMaxRepeats times and never past the
  /// deadline, nor when the engine was found dead. For requests that may be sent twice.
  void sendRepeatedly(const EngineRequest& request, const Answered& answered);
  void later(Duration delay, Executor::Task task);

  /// Measures the lag when it is in doubt and can exist; `then` hears the failure: the engine is
  /// lost, or did not answer.
  void prepareWorkers(Then then);
  /// Measures the lag now (ruling P16 b and c).
  void measureLag(Then then);
  /// Sends as many harmless calls as replies are late. `answered` gets the first failed one, or the
  /// last; not called with lag 0.
  void settle(Answered answered);

  /// Ends the flow. Lag and loss are filled in.
  void finish(Reply reply);
  /// Ends the flow with a Reply that is nothing but this status.
  void finishWith(const Status& status);
  /// Ends the flow and gives the engine up until it is restarted.
  void lose(const Status& why);

  [[nodiscard]] int repeats() const { return repeats_; }

  EngineState& state_;
  const Call call_;
  const Deadline deadline_;

 private:
  void readForLag();
  void onLagRead(const Result<http::Response>& result);
  void endMeasurement(const Status& status);
  void settleOnce();

  Finished finished_;
  Executor::TimerId timer_ = 0;
  std::vector<std::string> secrets_;
  int repeats_ = 0;
  LagMeter meter_;
  Then measured_;
  Answered settled_;
  int settling_ = 0;  ///< harmless calls still to send
};

}  // namespace pushrod::engines::vllm
