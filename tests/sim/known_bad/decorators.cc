// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/known_bad/decorators.h"

#include <functional>
#include <utility>

namespace pushrod::sim::known_bad {

namespace {

Reply good(CallKind kind) {
  Reply reply;
  reply.kind = kind;
  reply.httpStatus = 200;
  return reply;
}

/// Passes calls on, except those that `pretend` answers itself, and changes replies.
class Decorator final : public EngineClient {
 public:
  struct Rules {
    std::function<bool(const Call&)> pretend;
    std::function<void(const Call&, Reply&)> change;
  };

  Decorator(std::unique_ptr<EngineClient> inner, Rules rules)
      : inner_(std::move(inner)), rules_(std::move(rules)) {}

  void call(Call call, Deadline deadline, Done done) override {
    if (rules_.pretend && rules_.pretend(call)) {
      // A harmless read in its place, so that the answer takes its time.
      Call read;
      read.kind = CallKind::kReadPaused;
      inner_->call(read, deadline, [done, kind = call.kind](const Reply&) { done(good(kind)); });
      return;
    }
    inner_->call(call, deadline, [this, call, done](Reply reply) {
      if (rules_.change) {
        rules_.change(call, reply);
      }
      done(std::move(reply));
    });
  }

  void cancel(const Status& reason) override { inner_->cancel(reason); }

  [[nodiscard]] const std::string& name() const override { return inner_->name(); }

  [[nodiscard]] const std::string& url() const override { return inner_->url(); }

 private:
  std::unique_ptr<EngineClient> inner_;
  Rules rules_;
};

std::unique_ptr<EngineClient> decorated(std::unique_ptr<EngineClient> inner,
                                        Decorator::Rules rules) {
  return std::make_unique<Decorator>(std::move(inner), std::move(rules));
}

}  // namespace

std::unique_ptr<EngineClient> withoutEmptySession(std::unique_ptr<EngineClient> inner,
                                                  World& world) {
  return decorated(std::move(inner),
                   {[&world](const Call& call) {
                      return world.phase() == Phase::kClean &&
                             (call.kind == CallKind::kStart || call.kind == CallKind::kFinish);
                    },
                    nullptr});
}

std::unique_ptr<EngineClient> withoutVerify(std::unique_ptr<EngineClient> inner, World& world) {
  return decorated(std::move(inner), {nullptr, [&world](const Call& call, Reply& reply) {
                                        if (world.phase() < Phase::kFinish) {
                                          return;
                                        }
                                        if (call.kind == CallKind::kFinish) {
                                          reply = good(call.kind);
                                        }
                                        if (call.kind == CallKind::kReadVersion) {
                                          reply = good(call.kind);
                                          reply.text = "v1";
                                        }
                                      }});
}

std::unique_ptr<EngineClient> withoutUpdateCheck(std::unique_ptr<EngineClient> inner,
                                                 World& /*world*/) {
  return decorated(std::move(inner), {nullptr, [](const Call& call, Reply& reply) {
                                        if (call.kind == CallKind::kUpdate) {
                                          reply = good(call.kind);
                                        }
                                      }});
}

std::unique_ptr<EngineClient> withoutStaleClose(std::unique_ptr<EngineClient> inner,
                                                World& /*world*/) {
  return decorated(std::move(inner), {nullptr, [](const Call& call, Reply& reply) {
                                        if (call.kind == CallKind::kReadSession) {
                                          reply.flag = false;
                                        }
                                      }});
}

}  // namespace pushrod::sim::known_bad
