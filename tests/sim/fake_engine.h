// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <pushrod/engine_client.h>
#include <pushrod/executor.h>

#include "tests/sim/fake_model.h"
#include "tests/sim/fault_plan.h"
#include "tests/sim/random.h"

namespace pushrod::sim {

/// The model every engine holds, and the draft model beside it.
inline constexpr std::size_t kTensors = 4;
inline constexpr std::array<const char*, kTensors> kTargetNames = {"l0.q", "l0.k", "l1.q", "l1.k"};
inline constexpr std::size_t kDraftTensors = 2;
/// A larger reply lag makes an engine lost (P16).
inline constexpr int kMostLag = 8;

/// What an engine did against its rules, or was led to do.
using Complain = std::function<void(const std::string&)>;

/// One engine with the session rules of the contract: it serves one call at a time.
class FakeEngine {
 public:
  using Answer = std::function<void(Reply)>;

  /// What it is, as opposed to how it is.
  struct Setup {
    std::string name;
    bool oldProfile = false;
    bool versions = true;
    bool corruptible = false;  ///< whether it can come to hold other values
    bool draft = false;        ///< pushes carry its draft model as well: both must be of one push
    int workers = 1;
    int slowness = 1;
    Duration pauseTakes{};
  };

  FakeEngine(Executor& executor, Pace& pace, Setup setup, Complain complain);

  /// As it stands before the first push.
  void find(const EngineStart& start);

  /// Takes a request; `answer` is called when it was served, never inline. `how`: what goes wrong
  /// inside the engine.
  void submit(Call call, Answer answer, FaultKind how = FaultKind::kNone);
  void crash(bool forEver);

  /// Another model is served from now on.
  void change() { model_ = "other"; }

  [[nodiscard]] bool changed() const { return model_ == "other"; }

  /// The core never answers again.
  void freeze();
  void stall(Duration time);
  /// Somebody else's order.
  void resumeByOther();
  /// What an operator does: a dead or frozen engine is started again, one asleep is woken.
  void heal();

  // The receiving side of a channel.
  [[nodiscard]] bool joined(std::uint64_t channel) const { return channel_ == channel; }

  [[nodiscard]] bool reading(std::uint64_t channel, int source) const {
    return reading_ && channel_ == channel && run_.source == source &&
           executor_.now() >= stalledUntil_;
  }

  void receive(std::size_t tensor, int content);

  /// Where chunks are read that an update tells of; nullopt: other bytes stand there.
  void readFrom(std::function<std::optional<int>(std::size_t tensor)> memory) {
    memory_ = std::move(memory);
  }

  /// Whether somebody listens there for the engine that is told of a channel.
  void dialBy(std::function<bool(std::uint64_t channel)> dial) { dial_ = std::move(dial); }

  /// A source of the channel has all its connections, or has closed them.
  void channelOpen(std::uint64_t channel, int source);
  void channelDied(std::uint64_t channel, int source);

  // What can be seen of it.
  [[nodiscard]] const std::string& name() const { return setup_.name; }

  [[nodiscard]] bool alive() const { return alive_; }

  [[nodiscard]] bool frozen() const { return frozen_; }

  /// Whether it generates for a reason that no push can foresee.
  [[nodiscard]] bool surprised() const { return surprised_; }

  /// It crashed, and nobody could have noticed.
  void surprise() {
    surprised_ = true;
    forgot_ = true;
  }

  [[nodiscard]] bool asleep() const { return asleep_ || cacheAsleep_; }

  [[nodiscard]] int lag() const { return lag_; }

  [[nodiscard]] bool paused() const { return paused_; }

  [[nodiscard]] bool session() const { return session_; }

  [[nodiscard]] const std::string& label() const { return label_; }

  /// Whether every tensor of each model is of one push and none is a placeholder.
  [[nodiscard]] bool whole() const {
    return target_.whole() && (!setup_.draft || draftModel_.whole());
  }

  /// The push whose content it holds, kTorn when mixed.
  [[nodiscard]] int content() const {
    const bool pair = !setup_.draft || draftModel_.content() == target_.content();
    return pair ? target_.content() : kTorn;
  }

  [[nodiscard]] std::uint64_t starts() const { return starts_; }

  [[nodiscard]] std::uint64_t restarts() const { return restarts_; }

  [[nodiscard]] std::uint64_t resumes() const { return resumes_; }

 private:
  struct Job {
    Call call;
    Answer answer;
    FaultKind how = FaultKind::kNone;
  };

  /// The tensors that one update brings, and who sends them.
  struct Run {
    std::size_t first = 0;
    std::size_t end = 0;
    int source = 0;
  };

  void next();
  void serve();
  void servePause();
  void serveInit();
  void done(Reply reply);
  void fail(const std::string& text);
  void start();
  void update();
  void finish();

  [[nodiscard]] FakeModel& model() { return draft_ ? draftModel_ : target_; }

  [[nodiscard]] Run runOf(const std::string& body);
  void updateChunk(std::size_t tensor, bool late);
  void endUpdate(const std::string& error);
  [[nodiscard]] Reply identify() const;
  [[nodiscard]] std::shared_ptr<const std::map<std::string, std::string>> checksums() const;
  void boot();

  Executor& executor_;
  Pace& pace_;
  Setup setup_;
  Complain complain_;
  std::function<std::optional<int>(std::size_t)> memory_;
  std::function<bool(std::uint64_t)> dial_;
  std::deque<Job> queue_;
  bool serving_ = false;
  std::uint64_t life_ = 0;
  std::uint64_t starts_ = 0;
  std::uint64_t restarts_ = 0;
  std::uint64_t resumes_ = 0;

  bool alive_ = true;
  bool frozen_ = false;
  bool surprised_ = false;
  bool forgot_ = false;  ///< its session, and nobody has asked since
  TimePoint stalledUntil_{};
  std::uint64_t pauses_ = 0;
  bool asleep_ = false;
  bool cacheAsleep_ = false;
  int lag_ = 0;
  std::string model_ = "m";
  bool session_ = false;
  bool paused_ = false;
  std::string label_ = "default";
  std::uint64_t channel_ = 0;
  std::size_t sources_ = 1;  ///< of the channel
  std::set<int> opened_;     ///< those of them that it is connected to
  bool channelReady_ = false;
  bool streaming_ = false;  ///< an update is under way
  bool reading_ = false;
  Run run_;                   ///< of the update under way, or the last one
  std::size_t received_ = 0;  ///< tensors of the session so far
  bool complete_ = false;     ///< the session got its whole list
  bool draft_ = false;        ///< the session is one of the draft model
  FakeModel target_{kTensors};
  FakeModel draftModel_{kDraftTensors};
};

}  // namespace pushrod::sim
