// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/known_bad/decorators.h"

#include <functional>
#include <optional>
#include <utility>

namespace pushrod::sim::known_bad {

namespace {

Reply good(CallKind kind) {
  Reply reply;
  reply.kind = kind;
  reply.httpStatus = 200;
  return reply;
}

/// Passes calls on, except those that `pretend` answers itself, changes replies, and sends a call
/// of its own after good replies.
class Decorator final : public EngineClient {
 public:
  struct Rules {
    std::function<void(Call&)> alter = nullptr;
    std::function<bool(const Call&)> pretend = nullptr;
    std::function<void(const Call&, Reply&)> change = nullptr;
    /// A failed call to be sent once more as it is.
    std::function<bool(const Call&)> repeat = nullptr;
    /// The call that must follow a good reply to this one; nullopt: none.
    std::function<std::optional<Call>(const Call&)> follow = nullptr;
  };

  Decorator(std::unique_ptr<EngineClient> inner, Rules rules)
      : inner_(std::move(inner)), rules_(std::move(rules)) {}

  void call(Call call, Deadline deadline, Done done) override {
    if (rules_.alter) {
      rules_.alter(call);
    }
    if (rules_.pretend && rules_.pretend(call)) {
      // A harmless read in its place, so that the answer takes its time.
      Call read;
      read.kind = CallKind::kReadPaused;
      inner_->call(read, deadline, [done, kind = call.kind](const Reply&) { done(good(kind)); });
      return;
    }
    inner_->call(call, deadline, [this, call, deadline, done](Reply reply) {
      if (rules_.change) {
        rules_.change(call, reply);
      }
      auto next = rules_.follow && reply.status.ok() ? rules_.follow(call) : std::nullopt;
      if (rules_.repeat && !reply.status.ok() && !reply.lost && rules_.repeat(call)) {
        next = call;
      }
      if (!next) {
        done(std::move(reply));
        return;
      }
      if (next->kind == call.kind) {
        inner_->call(*next, deadline, done);
        return;
      }
      inner_->call(*next, deadline, [done, reply](const Reply&) { done(reply); });
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
  return decorated(std::move(inner), {.pretend = [&world](const Call& call) {
                     return world.phase() == Phase::kClean &&
                            (call.kind == CallKind::kStart || call.kind == CallKind::kFinish);
                   }});
}

std::unique_ptr<EngineClient> withoutVerify(std::unique_ptr<EngineClient> inner, World& world) {
  return decorated(std::move(inner), {.change = [&world](const Call& call, Reply& reply) {
                     if (world.phase() < Phase::kFinish) {
                       return;
                     }
                     if (call.kind == CallKind::kFinish) {
                       reply = good(call.kind);
                     }
                     if (call.kind == CallKind::kReadVersion) {
                       reply = good(call.kind);
                       reply.text = world.version();
                     }
                   }});
}

std::unique_ptr<EngineClient> withoutUpdateCheck(std::unique_ptr<EngineClient> inner,
                                                 World& /*world*/) {
  return decorated(std::move(inner), {.change = [](const Call& call, Reply& reply) {
                     if (call.kind == CallKind::kUpdate) {
                       reply = good(call.kind);
                     }
                   }});
}

std::unique_ptr<EngineClient> withoutStaleClose(std::unique_ptr<EngineClient> inner,
                                                World& /*world*/) {
  return decorated(std::move(inner), {.change = [](const Call& call, Reply& reply) {
                     if (call.kind == CallKind::kReadSession) {
                       reply.flag = false;
                     }
                   }});
}

std::unique_ptr<EngineClient> withAnyVersion(std::unique_ptr<EngineClient> inner, World& world) {
  return decorated(std::move(inner), {.change = [&world](const Call& call, Reply& reply) {
                     if (call.kind == CallKind::kReadVersion && world.phase() >= Phase::kFinish) {
                       reply.text = world.version();
                     }
                   }});
}

std::unique_ptr<EngineClient> withAnyContent(std::unique_ptr<EngineClient> inner,
                                             World& /*world*/) {
  return decorated(std::move(inner), {.change = [](const Call& call, Reply& reply) {
                     if (call.kind == CallKind::kChecksums) {
                       reply.checksums =
                           std::make_shared<const std::map<std::string, std::string>>();
                     }
                   }});
}

std::unique_ptr<EngineClient> withEarlyResume(std::unique_ptr<EngineClient> inner,
                                              World& /*world*/) {
  return decorated(std::move(inner), {.follow = [](const Call& call) -> std::optional<Call> {
                     if (call.kind != CallKind::kFinish || !call.hasVersion) {
                       return std::nullopt;
                     }
                     Call resume;
                     resume.kind = CallKind::kResume;
                     return resume;
                   }});
}

std::unique_ptr<EngineClient> withEarlyVersion(std::unique_ptr<EngineClient> inner, World& world) {
  return decorated(std::move(inner),
                   {.pretend = [](const Call& call) { return call.hasVersion; },
                    .follow = [&world](const Call& call) -> std::optional<Call> {
                      if (call.kind != CallKind::kUpdate) {
                        return std::nullopt;
                      }
                      Call finish;
                      finish.kind = CallKind::kFinish;
                      finish.version = world.version();
                      finish.hasVersion = true;
                      return finish;
                    }});
}

std::unique_ptr<EngineClient> withVersionInEveryClose(std::unique_ptr<EngineClient> inner,
                                                      World& world) {
  return decorated(std::move(inner), {.alter = [&world](Call& call) {
                     if (call.kind == CallKind::kFinish) {
                       call.version = world.version();
                       call.hasVersion = true;
                     }
                   }});
}

std::unique_ptr<EngineClient> withoutLastClose(std::unique_ptr<EngineClient> inner, World& world) {
  return decorated(std::move(inner), {.pretend = [&world](const Call& call) {
                     return world.phase() == Phase::kFailing && call.kind == CallKind::kFinish;
                   }});
}

std::unique_ptr<EngineClient> withoutPause(std::unique_ptr<EngineClient> inner, World& world) {
  return decorated(
      std::move(inner),
      {.pretend = [](const Call& call) { return call.kind == CallKind::kPause; },
       .change =
           [&world](const Call& call, Reply& reply) {
             if (call.kind == CallKind::kReadPaused && world.phase() >= Phase::kPause) {
               reply.flag = true;
             }
           }});
}

std::unique_ptr<EngineClient> withBlindRepeat(std::unique_ptr<EngineClient> inner,
                                              World& /*world*/) {
  return decorated(std::move(inner), {.repeat = [](const Call& call) {
                     return call.kind == CallKind::kFinish && call.hasVersion;
                   }});
}

std::unique_ptr<EngineClient> withoutMarker(std::unique_ptr<EngineClient> inner, World& /*world*/) {
  return decorated(std::move(inner), {.pretend = [](const Call& call) {
                     return call.kind == CallKind::kSetVersion;
                   }});
}

std::unique_ptr<EngineClient> withLooseVersion(std::unique_ptr<EngineClient> inner, World& world) {
  return decorated(std::move(inner), {.change = [&world](const Call& call, Reply& reply) {
                     const std::string version = world.version();
                     if (call.kind == CallKind::kReadVersion && reply.text.size() > 1 &&
                         reply.text.compare(1, version.size() - 1, version, 1) == 0) {
                       reply.text = version;
                     }
                   }});
}

std::unique_ptr<EngineClient> withOneLook(std::unique_ptr<EngineClient> inner, World& world) {
  return decorated(std::move(inner), {.change = [&world](const Call& call, Reply& reply) {
                     if (call.kind == CallKind::kReadPaused && world.phase() == Phase::kPause) {
                       reply.flag = true;
                     }
                   }});
}

std::unique_ptr<EngineClient> withResumeOfLeftOut(std::unique_ptr<EngineClient> inner,
                                                  World& world) {
  return decorated(std::move(inner), {.follow = [&world](const Call& call) -> std::optional<Call> {
                     const Phase phase = world.phase();
                     const bool late = phase >= Phase::kFinish && phase <= Phase::kResume;
                     if (!late || call.hasVersion ||
                         (call.kind != CallKind::kReadSession && call.kind != CallKind::kFinish)) {
                       return std::nullopt;
                     }
                     Call resume;
                     resume.kind = CallKind::kResume;
                     return resume;
                   }});
}

std::unique_ptr<EngineClient> withVersionOfTarget(std::unique_ptr<EngineClient> inner,
                                                  World& world) {
  return decorated(std::move(inner), {.alter = [&world](Call& call) {
                     if (call.kind == CallKind::kFinish && world.phase() == Phase::kFinish) {
                       call.version = world.version();
                       call.hasVersion = true;
                     }
                   }});
}

std::unique_ptr<EngineClient> withoutEmptyDraft(std::unique_ptr<EngineClient> inner, World& world) {
  const auto pretended = std::make_shared<bool>(false);
  return decorated(std::move(inner), {.pretend = [&world, pretended](const Call& call) {
                     if (world.phase() != Phase::kClean ||
                         (call.kind != CallKind::kStart && call.kind != CallKind::kFinish)) {
                       return false;
                     }
                     const bool start = call.kind == CallKind::kStart;
                     const bool open = std::exchange(*pretended, start && call.draft);
                     return start ? call.draft : open;
                   }});
}

std::unique_ptr<EngineClient> withLostDraftFlag(std::unique_ptr<EngineClient> inner,
                                                World& /*world*/) {
  return decorated(std::move(inner), {.alter = [](Call& call) { call.draft = false; }});
}

}  // namespace pushrod::sim::known_bad
