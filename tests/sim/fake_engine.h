// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <pushrod/engine_client.h>
#include <pushrod/executor.h>

namespace pushrod::sim {

/// The model every engine holds: pairs of tensors fused into one layer.
inline constexpr std::size_t kTensors = 4;
inline constexpr std::size_t kPerLayer = 2;
inline constexpr std::size_t kLayers = kTensors / kPerLayer;
/// Content of a tensor: the number of the push that sent it; 0: as started.
inline constexpr int kTorn = -1;

/// What an engine did against its rules, or was led to do.
using Complain = std::function<void(const std::string&)>;

/// One engine with the session rules of the contract: it serves one call at a time, a layer is done
/// when the number of elements it got reaches its total, and counters of an interrupted layer
/// survive into the next session unless an empty one clears them.
class FakeEngine {
 public:
  using Answer = std::function<void(Reply)>;

  FakeEngine(Executor& executor, std::string name, bool oldProfile, Complain complain);

  /// Takes a request; `answer` is called when it was served, never inline.
  void submit(Call call, Answer answer);
  void crash(bool forEver);

  // The receiving side of a channel.
  [[nodiscard]] bool joined(std::uint64_t channel) const { return channel_ == channel; }

  [[nodiscard]] bool reading(std::uint64_t channel) const {
    return reading_ && channel_ == channel;
  }

  void receive(std::size_t tensor, int content);

  /// Where chunks are read that an update tells of; nullopt: other bytes stand there.
  void readFrom(std::function<std::optional<int>(std::size_t tensor)> memory) {
    memory_ = std::move(memory);
  }

  void channelOpen(std::uint64_t channel);
  void channelDied(std::uint64_t channel);

  // What can be seen of it.
  [[nodiscard]] const std::string& name() const { return name_; }

  [[nodiscard]] bool alive() const { return alive_; }

  [[nodiscard]] bool paused() const { return paused_; }

  [[nodiscard]] bool session() const { return session_; }

  [[nodiscard]] const std::string& label() const { return label_; }

  /// Whether every tensor is of one push and none is a placeholder.
  [[nodiscard]] bool whole() const;

  /// The push whose content it holds, kTorn when mixed.
  [[nodiscard]] int content() const { return whole() ? weights_.front() : kTorn; }

  [[nodiscard]] std::uint64_t starts() const { return starts_; }

  [[nodiscard]] std::uint64_t restarts() const { return restarts_; }

  [[nodiscard]] std::uint64_t resumes() const { return resumes_; }

 private:
  struct Job {
    Call call;
    Answer answer;
  };

  void next();
  void serve();
  void done(Reply reply);
  void fail(const std::string& text);
  void start();
  void update();
  void finish();
  void load(std::size_t tensor, int content);
  void updateChunk(std::size_t tensor);
  void endUpdate(const std::string& error);
  [[nodiscard]] Reply identify() const;
  void boot();

  Executor& executor_;
  std::string name_;
  bool oldProfile_;
  Complain complain_;
  std::function<std::optional<int>(std::size_t)> memory_;
  std::deque<Job> queue_;
  bool serving_ = false;
  std::uint64_t life_ = 0;
  std::uint64_t starts_ = 0;
  std::uint64_t restarts_ = 0;
  std::uint64_t resumes_ = 0;

  bool alive_ = true;
  bool session_ = false;
  bool paused_ = false;
  std::string label_ = "default";
  std::uint64_t channel_ = 0;
  bool channelReady_ = false;
  bool reading_ = false;
  std::size_t received_ = 0;   ///< tensors of the running update
  bool complete_ = false;      ///< the session's update got its whole list
  bool placeholders_ = false;  ///< from start until a good finish: serving would kill it
  std::vector<int> weights_ = std::vector<int>(kTensors, 0);
  std::vector<std::size_t> counters_ = std::vector<std::size_t>(kLayers, 0);
  std::vector<int> pieces_ = std::vector<int>(kTensors, kTorn);  ///< of this session
};

}  // namespace pushrod::sim
