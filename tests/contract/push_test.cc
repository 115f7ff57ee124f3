// SPDX-License-Identifier: Apache-2.0
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/contract/engine_pair.h"
#include "transports/tcp/plane.h"

namespace pushrod::contract {
namespace {

using std::chrono::seconds;

const std::vector<std::int8_t> kBytes(1 << 16, 7);

Manifest manifestOf(std::size_t tensors) {
  Manifest manifest;
  for (std::size_t i = 0; i < tensors; ++i) {
    manifest.tensors.push_back(
        {"model.layers." + std::to_string(i) + ".w", DType::kInt8, {1 << 16}, 0});
  }
  return manifest;
}

Call bodyCall(CallKind kind, const std::string& body) {
  Call call;
  call.kind = kind;
  call.body = std::make_shared<const std::string>(body);
  return call;
}

/// Opens a channel to one engine, with the init call beside it.
void openChannel(transports::tcp::TcpPlane& plane,
                 BlockingClient& client,
                 std::uint16_t port,
                 int workers) {
  ChannelSpec spec;
  spec.epoch = 1;
  PlaneEngine engine;
  engine.name = "fe";
  engine.workers = workers;
  engine.url = "http://127.0.0.1:" + std::to_string(port);
  spec.engines.push_back(engine);
  const auto bodies = plane.announce(spec);
  ASSERT_TRUE(bodies.ok()) << bodies.status().message();
  std::future<Reply> init = client.begin(bodyCall(CallKind::kInit, bodies->front()));
  const SteadyClock clock;
  const Status open = plane.open(Deadline::after(clock, seconds(10)));
  EXPECT_TRUE(open.ok()) << open.message();
  ASSERT_EQ(init.wait_for(kPatience), std::future_status::ready);
  const Reply reply = init.get();
  EXPECT_TRUE(reply.status.ok()) << reply.status.message();
}

/// Streams the manifest; returns the first failure.
Status stream(transports::tcp::TcpPlane& plane, const Manifest& manifest) {
  const SteadyClock clock;
  const Deadline deadline = Deadline::after(clock, seconds(10));
  Status status = plane.begin(manifest);
  for (const TensorSpec& spec : manifest.tensors) {
    if (!status) {
      return status;
    }
    TensorView view;
    view.name = spec.name;
    view.dtype = spec.dtype;
    view.shape = spec.shape;
    view.data = kBytes.data();
    status = plane.put(spec, view, deadline);
  }
  return status ? plane.flush(deadline) : status;
}

TransportConfig smallBuffers() {
  TransportConfig config;
  config.kind = TransportKind::kTcp;
  config.buffer = 1 << 17;
  config.bind = "127.0.0.1";
  return config;
}

class PushTest : public ::testing::TestWithParam<int> {};

TEST_P(PushTest, AWholePushThroughClientPlaneAndEngine) {
  TestEngine engine("0.33", GetParam());
  BlockingClient client(engine.port());
  ASSERT_NE(client.connect(), nullptr);
  transports::tcp::TcpPlane plane(smallBuffers(), seconds(10));
  EXPECT_TRUE(client.run(CallKind::kPause).status.ok());
  openChannel(plane, client, engine.port(), GetParam());
  EXPECT_TRUE(client.run(CallKind::kStart).status.ok());
  const Manifest manifest = manifestOf(8);
  const auto info = plane.updateInfo(manifest);
  ASSERT_TRUE(info.ok());
  std::future<Reply> update = client.begin(bodyCall(CallKind::kUpdate, *info));
  const Status streamed = stream(plane, manifest);
  EXPECT_TRUE(streamed.ok()) << streamed.message();
  ASSERT_EQ(update.wait_for(kPatience), std::future_status::ready);
  const Reply updated = update.get();
  EXPECT_TRUE(updated.status.ok()) << updated.status.message();
  EXPECT_TRUE(client.finish("8").status.ok());
  EXPECT_TRUE(client.run(CallKind::kFlush).status.ok());
  EXPECT_EQ(client.run(CallKind::kReadVersion).text, "8");
  EXPECT_TRUE(client.run(CallKind::kResume).status.ok());
  const std::string state = engine.state();
  EXPECT_TRUE(has(state, R"("version":"8")")) << state;
  EXPECT_TRUE(has(state, R"("torn":false)")) << state;
  EXPECT_TRUE(has(state, R"("session":"closed")")) << state;
  EXPECT_TRUE(has(state, R"("model.layers.7.w")")) << state;
  plane.abort(Status(Code::kCancelled, "the test is over"));
}

INSTANTIATE_TEST_SUITE_P(Workers, PushTest, ::testing::Values(1, 2));

TEST(BrokenPushTest, AnUpdateThatFailsIsHeardWhileTheStreamIsStillGoing) {
  TestEngine engine("0.33", 2);
  BlockingClient client(engine.port());
  ASSERT_NE(client.connect(), nullptr);
  transports::tcp::TcpPlane plane(smallBuffers(), seconds(10));
  openChannel(plane, client, engine.port(), 2);
  EXPECT_TRUE(client.run(CallKind::kStart).status.ok());
  engine.faults(
      R"([{"route":"update_weights","nth":1,"do":"fail_after_chunks","after_chunks":1}])");
  // More than the sockets' own buffers hold, so that the sender cannot be done before it hears.
  const Manifest manifest = manifestOf(2048);
  const auto info = plane.updateInfo(manifest);
  ASSERT_TRUE(info.ok());
  std::future<Reply> update = client.begin(bodyCall(CallKind::kUpdate, *info));
  EXPECT_FALSE(stream(plane, manifest).ok());
  ASSERT_EQ(update.wait_for(kPatience), std::future_status::ready);
  const Reply failed = update.get();
  EXPECT_FALSE(failed.status.ok());
  EXPECT_EQ(failed.httpStatus, 500) << failed.status.message();
  plane.abort(failed.status);
  // The channel is gone; the session's state is read, not tried out.
  const Reply session = client.run(CallKind::kReadSession);
  ASSERT_TRUE(session.status.ok()) << session.status.message();
  EXPECT_EQ(session.flag, false);
  EXPECT_FALSE(has(engine.state(), R"("version":"8")"));
}

}  // namespace
}  // namespace pushrod::contract
