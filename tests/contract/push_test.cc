// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/contract/pushing.h"

namespace pushrod::contract {
namespace {

using std::chrono::seconds;

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
  const Reply updated = await(update);
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
  const Reply failed = await(update);
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
