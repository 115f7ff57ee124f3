// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/contract/canned_engine.h"
#include "tests/contract/engine_pair.h"

namespace pushrod::contract {

/// A release, and who speaks for it.
struct Setting {
  const char* release;  ///< what its /version says
  const char* profile;  ///< of the client, and of the transcript
  enum class Arm { kReference, kTranscript } arm = Arm::kReference;
};

std::ostream& operator<<(std::ostream& out, const Setting& setting);

/// Every profile twice: through the reference engine and through its transcript.
[[nodiscard]] std::vector<Setting> settings();
[[nodiscard]] std::string settingName(const ::testing::TestParamInfo<Setting>& info);
/// The folder of the transcripts.
[[nodiscard]] std::string transcripts();

/// The engine that a body talks to, whichever arm it is.
class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  [[nodiscard]] virtual std::uint16_t port() const = 0;
  /// What the reference engine must be told to answer; a transcript says it by itself.
  virtual void faults(const std::string& rules) = 0;
  /// Whether there is a receiver at the end of the data channel.
  [[nodiscard]] virtual bool receives() const = 0;
};

/// The engine of `setting` for `scene`. Null when the reference material has no bytes for it: the
/// reason stands in the transcript and is printed.
[[nodiscard]] std::unique_ptr<Engine> openEngine(const Setting& setting,
                                                 const std::string& scene,
                                                 int workers = 1);

/// One contract, said twice: the base of every body.
class ContractTest : public ::testing::TestWithParam<Setting> {
 protected:
  /// Whether there is an engine to talk to; the client is connected to it unless told otherwise.
  [[nodiscard]] bool begin(const std::string& scene, int workers = 1);
  void connect();

  Reply run(CallKind kind) { return client_->run(kind); }

  Reply finish(const std::string& version) { return client_->finish(version); }

  [[nodiscard]] bool isOpen();
  /// Asserts that a call was refused, without any effect, by an answer that says `text`.
  static void expectRefused(const Reply& reply, int httpStatus, const std::string& text);
  /// Asserts that a route is there from some release on: rejected with a 404 before.
  static void expectRoute(const Reply& reply, bool exists);

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<BlockingClient> client_;
  std::shared_ptr<const EngineIdentity> identity_;
};

}  // namespace pushrod::contract
