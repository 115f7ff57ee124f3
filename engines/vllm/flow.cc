// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/flow.h"

#include <utility>

#include "engines/vllm/classify.h"
#include "engines/vllm/identity.h"
#include "engines/vllm/json.h"
#include "engines/vllm/reply_text.h"

namespace pushrod::engines::vllm {

namespace {

/// What must not come back in a message: the token, and what an init body says, since whoever knows
/// it can join the channel.
std::vector<std::string> secretsOf(const Call& call, const std::string& token) {
  // A shorter token would be found in texts that have nothing to do with it.
  constexpr std::size_t kShortestHidden = 8;
  std::vector<std::string> secrets;
  if (token.size() >= kShortestHidden) {
    secrets.push_back(token);
  }
  if (call.kind != CallKind::kInit || call.body == nullptr) {
    return secrets;
  }
  const auto body = parseJson(*call.body);
  for (const std::string_view key : {"channel", "nccl_unique_id_b64"}) {
    if (const auto secret = body ? stringOf(member(*body, key)) : std::nullopt) {
      secrets.push_back(*secret);
    }
  }
  return secrets;
}

std::vector<std::string> workerTexts(const std::string& body) {
  std::vector<std::string> texts;
  const auto value = parseJson(body);
  const boost::json::value* const results = value ? member(*value, "results") : nullptr;
  if (results != nullptr && results->is_array()) {
    for (const boost::json::value& entry : results->get_array()) {
      texts.push_back(stringOf(&entry).value_or(""));
    }
  }
  return texts;
}

Duration repeatDelay(int repeats) {
  constexpr Duration kFirst = std::chrono::milliseconds(100);
  Duration delay = kFirst;
  for (int i = 0; i < repeats; ++i) {
    delay *= 4;
  }
  return delay;
}

}  // namespace

Flow::Flow(EngineState& state, Call call, Deadline deadline, Finished finished)
    : state_(state),
      call_(std::move(call)),
      deadline_(deadline),
      finished_(std::move(finished)),
      secrets_(secretsOf(call_, state.options.token)) {}

Flow::~Flow() {
  state_.executor.cancel(timer_);
}

void Flow::send(const EngineRequest& request, Deadline deadline, Answered answered) {
  state_.wire.send(
      request, deadline, [this, answered = std::move(answered)](Result<http::Response> result) {
        if (result && !secrets_.empty()) {
          result->body = redacted(std::move(result->body), secrets_);
        }
        answered(std::move(result));
      });
}

void Flow::sendRepeatedly(const EngineRequest& request, const Answered& answered) {
  send(request, deadline_, [this, request, answered](Result<http::Response> result) {
    const Duration delay = repeatDelay(repeats_);
    const bool again = isTransient(result) && repeats_ < kMaxRepeats && !state_.wire.foundDead() &&
                       deadline_.remaining(state_.executor) > delay;
    if (!again) {
      answered(std::move(result));
      return;
    }
    ++repeats_;
    later(delay, [this, request, answered] { sendRepeatedly(request, answered); });
  });
}

void Flow::later(Duration delay, Executor::Task task) {
  timer_ = state_.executor.postAt(state_.executor.now() + delay, [this, task = std::move(task)] {
    timer_ = 0;
    task();
  });
}

void Flow::prepareWorkers(Then then) {
  if (!state_.lost) {
    then(state_.lost);
    return;
  }
  if (!state_.canLag() || !state_.lagDoubtful) {
    then(Status());
    return;
  }
  measureLag(std::move(then));
}

void Flow::measureLag(Then then) {
  meter_ = LagMeter();
  measured_ = std::move(then);
  readForLag();
}

void Flow::readForLag() {
  const Probe probe =
      meter_.next() == LagMeter::Attribute::kRank ? Probe::kRank : Probe::kSessionFlag;
  send(probeRequest(probe), deadline_, [this](const Result<http::Response>& result) {
    onLagRead(result);
  });
}

void Flow::onLagRead(const Result<http::Response>& result) {
  if (isTransient(result) || !result) {
    endMeasurement(httpVerdict(
        CallKind::kMeasureLag, result, state_.features, state_.where(probeRequest(Probe::kRank))));
    return;
  }
  if (result->status >= 300 && result->status < 500) {
    state_.lost = lagUnmeasurable("its workers cannot be asked: the harmless read answered " +
                                  std::to_string(result->status) + ": " + errorText(result->body));
    endMeasurement(state_.lost);
    return;
  }
  if (result->status < 300) {
    meter_.onAnswer(workerTexts(result->body));
  } else {
    meter_.onFailure();
  }
  if (const auto lag = meter_.lag()) {
    state_.lag = *lag;
    state_.lagDoubtful = false;
    state_.lost = lagVerdict(state_);
    endMeasurement(state_.lost);
  } else if (meter_.exhausted()) {
    state_.lost = lagUnmeasurable("after " + std::to_string(meter_.reads()) +
                                  " harmless reads its workers' answers fit no lag up to " +
                                  std::to_string(LagMeter::kMaxLag));
    endMeasurement(state_.lost);
  } else {
    readForLag();
  }
}

void Flow::endMeasurement(const Status& status) {
  std::exchange(measured_, nullptr)(status);
}

void Flow::settle(Answered answered) {
  settled_ = std::move(answered);
  settling_ = state_.lag;
  settleOnce();
}

void Flow::settleOnce() {
  --settling_;
  send(probeRequest(Probe::kCheckHealth), deadline_, [this](Result<http::Response> result) {
    if (settling_ == 0 || !result || result->status >= 300) {
      std::exchange(settled_, nullptr)(std::move(result));
      return;
    }
    settleOnce();
  });
}

void Flow::finish(Reply reply) {
  reply.kind = call_.kind;
  reply.lag = state_.lag;
  reply.lost = !state_.lost.ok();
  finished_(std::move(reply));
}

void Flow::finishWith(const Status& status) {
  Reply reply;
  reply.status = status;
  finish(std::move(reply));
}

void Flow::lose(const Status& why) {
  state_.lost = why;
  finishWith(why);
}

}  // namespace pushrod::engines::vllm
