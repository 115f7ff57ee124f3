// SPDX-License-Identifier: Apache-2.0
// Workers that stop, close or speak; interruption; abort.
#include "tests/unit/transports/tcp_fixture.h"

namespace pushrod::transports::tcp {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// More than two loopback sockets and two packed buffers hold.
std::vector<Sample> manyBytes() {
  std::vector<Sample> samples;
  for (int i = 0; i < 40; ++i) {
    samples.push_back(sampleOf("t" + std::to_string(i), 1 << 20));
  }
  return samples;
}

constexpr std::uint64_t kMib = 1 << 20;

TEST(TcpFailure, interruptFreesAPutWhoseWorkerDoesNotRead) {
  OpenChannel channel = openChannel(smallConfig(kMib), {engineNamed("a")});
  const std::vector<Sample> samples = manyBytes();
  auto push = std::async(std::launch::async, [&] { return pushAll(*channel.plane, samples); });
  // Once a buffer waits for the worker, the pass is stuck or about to be.
  while (channel.plane->inFlightBytes() < kMib) {
    std::this_thread::yield();
  }
  EXPECT_LE(channel.plane->inFlightBytes(), 2 * 2 * kMib);
  const auto before = steady_clock::now();
  channel.plane->interrupt(Status(Code::kAborted, "engine b refused"));
  const Status status = push.get();
  EXPECT_LT(steady_clock::now() - before, milliseconds(1000));
  EXPECT_EQ(status.message(), "engine b refused");
  const auto aborting = steady_clock::now();
  channel.plane->abort(status);
  EXPECT_LT(steady_clock::now() - aborting, milliseconds(1000));
  EXPECT_FALSE(channel.plane->ready());
}

TEST(TcpFailure, interruptEndsTheNextCallUntilBegin) {
  OpenChannel channel = openChannel(smallConfig(), {engineNamed("a")});
  const std::vector<Sample> samples = {sampleOf("x", 10)};
  ASSERT_TRUE(channel.plane->begin(manifestOf(samples)).ok());
  channel.plane->interrupt(Status(Code::kCancelled, "first"));
  channel.plane->interrupt(Status(Code::kCancelled, "second"));
  EXPECT_EQ(channel.plane->put(samples[0].spec, samples[0].view(), in(kSoon)).message(), "first");
  EXPECT_EQ(channel.plane->flush(in(kSoon)).message(), "first");
  channel.plane->abort(Status(Code::kCancelled, "first"));
  joinAll(channel, {engineNamed("a")});
  channel.plane->interrupt(Status(Code::kCancelled, "third"));
  EXPECT_TRUE(channel.plane->ready());
  EXPECT_TRUE(pushAll(*channel.plane, samples).ok());
}

TEST(TcpFailure, interruptEndsOpen) {
  TcpPlane plane(smallConfig(), kSoon);
  ChannelSpec spec;
  spec.engines = {engineNamed("a")};
  ASSERT_TRUE(plane.announce(spec).ok());
  auto open = std::async(std::launch::async, [&] { return plane.open(in(kSoon)); });
  plane.interrupt(Status(Code::kAborted, "init was refused"));
  EXPECT_EQ(open.get().message(), "init was refused");
}

TEST(TcpFailure, theDeadlineOfAPutNamesTheSlowestWorker) {
  OpenChannel channel = openChannel(smallConfig(kMib), {engineNamed("a"), engineNamed("b")});
  auto reader =
      std::async(std::launch::async, [&] { return channel.workers[0].discardUpdate(false); });
  const std::vector<Sample> samples = manyBytes();
  ASSERT_TRUE(channel.plane->begin(manifestOf(samples)).ok());
  Status status;
  for (std::size_t i = 0; i < samples.size() && status.ok(); ++i) {
    status = channel.plane->put(samples[i].spec, samples[i].view(), in(milliseconds(300)));
  }
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(status.message(), HasSubstr("engine 'b' worker 0"));
  EXPECT_EQ(status.origin().engine, "b");
  channel.plane->abort(status);
  EXPECT_FALSE(reader.get());
}

TEST(TcpFailure, aWorkerThatTakesNothingForTheProgressLimitIsNamed) {
  OpenChannel channel =
      openChannel(smallConfig(kMib), {engineNamed("a"), engineNamed("b", 2)}, milliseconds(500));
  auto first =
      std::async(std::launch::async, [&] { return channel.workers[0].discardUpdate(true); });
  auto second =
      std::async(std::launch::async, [&] { return channel.workers[1].discardUpdate(true); });
  const Status status = pushAll(*channel.plane, manyBytes());
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("engine 'b' worker 1 (rank 3)"), HasSubstr("timeouts.progress")));
  EXPECT_EQ(status.origin().engine, "b");
  EXPECT_FALSE(channel.plane->ready());
  channel.plane->abort(status);
  EXPECT_FALSE(first.get());
  EXPECT_FALSE(second.get());
}

TEST(TcpFailure, progressDoesNotCountWhileNothingIsOwed) {
  OpenChannel channel = openChannel(smallConfig(), {engineNamed("a")}, milliseconds(60));
  const std::vector<Sample> samples = {sampleOf("x", 200), sampleOf("y", 10)};
  ASSERT_TRUE(channel.plane->begin(manifestOf(samples)).ok());
  ASSERT_TRUE(channel.plane->put(samples[0].spec, samples[0].view(), in(kSoon)).ok());
  ASSERT_TRUE(channel.workers[0].readFrame().has_value());
  // A gather that takes three times the limit: nothing comes, and nothing is wrong.
  auto waiting = std::async(std::launch::async, [&] { return channel.workers[0].readFrame(); });
  EXPECT_EQ(waiting.wait_for(milliseconds(180)), std::future_status::timeout);
  EXPECT_TRUE(channel.plane->ready());
  ASSERT_TRUE(channel.plane->put(samples[1].spec, samples[1].view(), in(kSoon)).ok());
  EXPECT_TRUE(channel.plane->flush(in(kSoon)).ok());
  EXPECT_TRUE(waiting.get().has_value());
}

/// Waits until the plane has noticed, with a limit.
bool becomesUnready(const TcpPlane& plane) {
  const auto limit = steady_clock::now() + kSoon;
  while (plane.ready() && steady_clock::now() < limit) {
    std::this_thread::yield();
  }
  return !plane.ready();
}

TEST(TcpFailure, aClosedConnectionIsNoticedBetweenUpdatesAndTheOthersHearWhy) {
  OpenChannel channel = openChannel(smallConfig(), {engineNamed("a", 2), engineNamed("b")});
  ASSERT_TRUE(pushAll(*channel.plane, {sampleOf("x", 10)}).ok());
  channel.workers[1].close();
  ASSERT_TRUE(becomesUnready(*channel.plane));
  const Status status = channel.plane->begin(manifestOf({sampleOf("x", 10)}));
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("engine 'a' worker 1 (rank 2)"));
  EXPECT_EQ(status.origin().engine, "a");
  channel.plane->abort(status);
  std::vector<std::string> got;
  EXPECT_EQ(channel.workers[2].receiveUpdate(manifestOf({sampleOf("x", 10)}), 100, got), "");
  EXPECT_THAT(channel.workers[2].receiveUpdate(manifestOf({sampleOf("x", 10)}), 100, got),
              AllOf(StartsWith("abort: "), HasSubstr("engine 'a' worker 1 (rank 2)")));
  EXPECT_TRUE(channel.workers[2].closedByPeer());
}

TEST(TcpFailure, aConnectionClosedInMidUpdateEndsThePut) {
  OpenChannel channel = openChannel(smallConfig(kMib), {engineNamed("a"), engineNamed("b")});
  const std::vector<Sample> samples = manyBytes();
  auto first =
      std::async(std::launch::async, [&] { return channel.workers[0].discardUpdate(false); });
  auto second = std::async(std::launch::async, [&] {
    const bool read = channel.workers[1].readFrame().has_value();
    channel.workers[1].close();
    return read;
  });
  const Status status = pushAll(*channel.plane, samples);
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(status.origin().engine, "b");
  EXPECT_TRUE(second.get());
  channel.plane->abort(status);
  EXPECT_FALSE(first.get());
}

TEST(TcpFailure, bytesFromAWorkerAreAFault) {
  OpenChannel channel = openChannel(smallConfig(), {engineNamed("a")});
  ASSERT_TRUE(channel.workers[0].send("x"));
  ASSERT_TRUE(becomesUnready(*channel.plane));
  EXPECT_THAT(channel.plane->begin(manifestOf({sampleOf("x", 10)})).message(),
              HasSubstr("does not allow"));
}

TEST(TcpFailure, aConnectionLostBeforeOpenFailsIt) {
  TcpPlane plane(smallConfig(), kSoon);
  ChannelSpec spec;
  spec.engines = {engineNamed("a", 2)};
  const auto infos = plane.announce(spec);
  ASSERT_TRUE(infos.ok());
  const InitInfo info = InitInfo::parse(infos->front());
  {
    TcpReceiver worker = TcpReceiver::connectTo(info);
    ASSERT_EQ(worker.hello(info.channel, 2), 0);
  }
  const Status status = plane.open(in(kSoon));
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("worker 1 (rank 2)"));
}

TEST(TcpFailure, abortReasonsAreCutToWholeCharacters) {
  OpenChannel channel = openChannel(smallConfig(), {engineNamed("a")});
  std::string reason = "x";
  while (reason.size() < 6000) {
    reason += "\xe2\x82\xac";
  }
  channel.plane->abort(Status(Code::kDataMismatch, reason));
  const auto frame = channel.workers[0].readFrame();
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->kind, 3U);
  EXPECT_EQ(frame->xxh3, 0U);
  // One byte and then three at a time; 4096 itself is reachable.
  EXPECT_EQ(frame->length, 4096U);
  EXPECT_EQ(channel.workers[0].payload(), reason.substr(0, 4096));
  EXPECT_TRUE(channel.workers[0].closedByPeer());
}

TEST(TcpFailure, abortInsideAFrameClosesWithoutOne) {
  OpenChannel channel = openChannel(smallConfig(32 * kMib), {engineNamed("a")});
  const std::vector<Sample> samples = {sampleOf("x", 40 << 20)};
  ASSERT_TRUE(channel.plane->begin(manifestOf(samples)).ok());
  ASSERT_TRUE(channel.plane->put(samples[0].spec, samples[0].view(), in(kSoon)).ok());
  EXPECT_EQ(channel.plane->flush(in(milliseconds(50))).code(), Code::kDeadlineExceeded);
  channel.plane->abort(Status(Code::kAborted, "too late to say"));
  EXPECT_FALSE(channel.workers[0].readFrame().has_value());
}

TEST(TcpFailure, destructionTellsTheWorkers) {
  OpenChannel channel = openChannel(smallConfig(), {engineNamed("a")});
  channel.plane.reset();
  std::vector<std::string> got;
  EXPECT_THAT(channel.workers[0].receiveUpdate(manifestOf({sampleOf("x", 1)}), 100, got),
              StartsWith("abort: "));
}

TEST(TcpFailure, aHelloAtTheEndIsAnsweredClosing) {
  TcpPlane plane(smallConfig(), kSoon);
  ChannelSpec spec;
  spec.engines = {engineNamed("a", 2)};
  const auto infos = plane.announce(spec);
  ASSERT_TRUE(infos.ok());
  const InitInfo info = InitInfo::parse(infos->front());
  TcpReceiver worker = TcpReceiver::connectTo(info);
  ASSERT_EQ(worker.hello(info.channel, 1), 0);
  worker.close();
  EXPECT_FALSE(plane.open(in(kSoon)).ok());
  TcpReceiver late = TcpReceiver::connectTo(info);
  EXPECT_EQ(late.hello(info.channel, 2), 3);
}

}  // namespace
}  // namespace pushrod::transports::tcp
