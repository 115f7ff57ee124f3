// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/driver/thread_caller.h"

#include <future>
#include <memory>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "net/io_executor.h"

namespace pushrod::orchestrator {
namespace {

class NoAgreement final : public Agreement {
 public:
  Status open(std::uint64_t /*epoch*/, Deadline /*deadline*/) override { return {}; }

  Result<Verdict> vote(const VoteKey& /*key*/,
                       const Ballot& /*ballot*/,
                       Deadline /*deadline*/) override {
    return Verdict{};
  }

  Result<std::string> share(const VoteKey& /*key*/,
                            std::string bytes,
                            Deadline /*deadline*/) override {
    return bytes;
  }

  Result<std::vector<std::string>> collect(const VoteKey& /*key*/,
                                           std::string bytes,
                                           Deadline /*deadline*/) override {
    return std::vector<std::string>{std::move(bytes)};
  }

  void interrupt(std::uint64_t /*epoch*/, const Status& /*reason*/) noexcept override {}
};

/// A plane whose channel broke between the engines' start and the pass.
class BrokenPlane final : public DataPlane {
 public:
  [[nodiscard]] TransportKind kind() const override { return TransportKind::kTcp; }

  Result<std::vector<std::string>> announce(const ChannelSpec& /*spec*/) override {
    return std::vector<std::string>();
  }

  [[nodiscard]] bool ready() const override { return false; }

  Status open(Deadline /*deadline*/) override { return {}; }

  Result<std::string> updateInfo(const Manifest& /*manifest*/) override { return std::string(); }

  Status begin(const Manifest& /*manifest*/) override { return broken(); }

  Status put(const TensorSpec& /*spec*/,
             const TensorView& /*view*/,
             Deadline /*deadline*/) override {
    return Status(Code::kInternal, "put before a good begin");
  }

  Status flush(Deadline /*deadline*/) override {
    return Status(Code::kInternal, "flush before a good begin");
  }

  void interrupt(const Status& /*reason*/) noexcept override {}

  void abort(const Status& /*reason*/) noexcept override {}

  [[nodiscard]] std::uint64_t bytesSent(std::size_t /*engine*/) const override { return 0; }

  [[nodiscard]] std::uint64_t casts() const override { return 0; }

  [[nodiscard]] std::uint64_t bufferBytes() const override { return 0; }

  [[nodiscard]] std::uint64_t inFlightBytes() const override { return 0; }

  void releaseBuffers() override {}

  static Status broken() { return Status(Code::kUnavailable, "engine 'a' closed its connection"); }
};

class OneTensor final : public WeightSource {
 public:
  Result<Manifest> manifest() override { return declared(); }

  Status begin() override {
    given_ = false;
    return {};
  }

  Result<std::optional<TensorView>> next() override {
    if (std::exchange(given_, true)) {
      return std::optional<TensorView>();
    }
    TensorView view;
    view.name = "a";
    view.dtype = DType::kFloat32;
    view.shape = {1};
    view.data = &value_;
    return std::optional(view);
  }

  static Manifest declared() {
    Manifest manifest;
    manifest.tensors = {{"a", DType::kFloat32, {1}}};
    return manifest;
  }

 private:
  bool given_ = false;
  float value_ = 1;
};

TEST(ThreadCaller, APlaneThatIsBrokenAtThePasssBeginFailsASendAndNoGather) {
  net::IoExecutor executor;
  NoAgreement agreement;
  BrokenPlane plane;
  OneTensor source;
  const PushConfig push;
  ThreadCaller caller({executor, agreement, &plane, source, nullptr, push});
  std::thread trainer([&caller] { caller.run(); });
  const auto ask = [&caller](ActionKind kind) {
    const auto promise = std::make_shared<std::promise<CallerResult>>();
    CallerRequest request;
    request.kind = kind;
    request.manifest = std::make_shared<const Manifest>(OneTensor::declared());
    caller.perform(std::move(request),
                   [promise](CallerResult result) { promise->set_value(std::move(result)); });
    return promise->get_future().get();
  };
  // The ranks' collective goes on: a pass that cannot be sent is gathered to its step's end.
  EXPECT_TRUE(ask(ActionKind::kSourceBegin).status.ok());
  EXPECT_TRUE(ask(ActionKind::kSourceNext).status.ok());
  EXPECT_EQ(ask(ActionKind::kPlanePut).status, BrokenPlane::broken());
  EXPECT_EQ(ask(ActionKind::kPlaneFlush).status, BrokenPlane::broken());
  caller.stop();
  trainer.join();
}

}  // namespace
}  // namespace pushrod::orchestrator
