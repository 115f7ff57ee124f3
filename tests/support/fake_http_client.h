// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "http/client.h"
#include "tests/support/virtual_executor.h"

namespace pushrod::testing {

/// What a scripted server makes of one request.
struct ScriptedReply {
  Result<http::Response> result = http::Response{};
  Duration after = std::chrono::milliseconds(1);
  bool never = false;  ///< no answer: the request ends by its deadline

  static ScriptedReply json(int status, std::string body, Duration after = Duration(1)) {
    return {http::Response{status, "application/json", std::move(body)}, after, false};
  }

  static ScriptedReply refused() {
    return {
        Status(Code::kUnavailable, "connection refused", Outcome::kNotSent), Duration(0), false};
  }

  static ScriptedReply reset() {
    return {Status(Code::kUnavailable, "connection reset by peer", Outcome::kUnknown),
            Duration(1),
            false};
  }

  static ScriptedReply silence() {
    ScriptedReply reply;
    reply.never = true;
    return reply;
  }
};

/// One request as the script saw it.
struct SeenRequest {
  std::string line;  ///< "POST /pause?mode=keep"
  std::string body;
  bool hasBody = false;
  Duration at{0};  ///< virtual time
};

/// Script and journal of one server, shared by the clients that talk to it.
struct ScriptedServer {
  std::function<ScriptedReply(const SeenRequest&)> script;
  std::vector<SeenRequest> seen;
  Duration cancelTakes = Duration::zero();  ///< until a cancelled request's answer comes

  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (const SeenRequest& request : seen) {
      all.push_back(request.line);
    }
    return all;
  }

  [[nodiscard]] int count(const std::string& line) const {
    int found = 0;
    for (const SeenRequest& request : seen) {
      found += request.line == line ? 1 : 0;
    }
    return found;
  }
};

/// An http::Client that answers from a script in virtual time.
class FakeHttpClient final : public http::Client {
 public:
  FakeHttpClient(VirtualExecutor& executor, std::shared_ptr<ScriptedServer> server)
      : executor_(executor), server_(std::move(server)) {}

  ~FakeHttpClient() override {
    for (const auto& [id, out] : out_) {
      executor_.cancel(out.timer);
    }
  }

  Id send(http::Request request, Deadline deadline, Done done) override {
    SeenRequest seen{request.method + " " + request.target,
                     request.body == nullptr ? "" : *request.body,
                     request.body != nullptr,
                     executor_.elapsed()};
    server_->seen.push_back(seen);
    ScriptedReply reply = server_->script(seen);
    const TimePoint when = executor_.now() + reply.after;
    const Id id = ++lastId_;
    out_[id].done = std::move(done);
    if (reply.never || when > deadline.when()) {
      arm(id,
          deadline.when(),
          Status(Code::kDeadlineExceeded, "no answer within the limit", Outcome::kUnknown));
    } else {
      arm(id, when, std::move(reply.result));
    }
    return id;
  }

  void cancel(Id id, const Status& reason) override {
    const auto at = out_.find(id);
    if (at != out_.end()) {
      executor_.cancel(at->second.timer);
      arm(id, executor_.now() + server_->cancelTakes, reason);
    }
  }

  [[nodiscard]] std::size_t outstanding() const { return out_.size(); }

 private:
  struct Out {
    Done done;
    Executor::TimerId timer = 0;
  };

  void arm(Id id, TimePoint when, Result<http::Response> result) {
    out_[id].timer = executor_.postAt(when, [this, id, result = std::move(result)] {
      const Done done = std::move(out_[id].done);
      out_.erase(id);
      done(result);
    });
  }

  VirtualExecutor& executor_;
  std::shared_ptr<ScriptedServer> server_;
  std::map<Id, Out> out_;
  Id lastId_ = 0;
};

}  // namespace pushrod::testing
