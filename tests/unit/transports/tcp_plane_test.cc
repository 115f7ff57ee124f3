// SPDX-License-Identifier: Apache-2.0
// The data pass: what goes over the wire, and what the counters say.
#include "tests/unit/transports/tcp_fixture.h"

namespace pushrod::transports::tcp {
namespace {

using ::testing::HasSubstr;

std::string number(std::uint64_t value, unsigned bytes) {
  std::string text;
  for (unsigned i = 0; i < bytes; ++i) {
    text += static_cast<char>((value >> (8 * i)) & 0xffU);
  }
  return text;
}

std::string frameBytes(std::uint32_t kind,
                       std::uint32_t index,
                       const std::string& payload,
                       bool digest) {
  const std::uint64_t xxh3 = digest ? XXH3_64bits(payload.data(), payload.size()) : 0;
  return number(kind, 4) + number(index, 4) + number(payload.size(), 8) + number(xxh3, 8) + payload;
}

std::string readBytes(TcpReceiver& worker, std::size_t count) {
  std::string bytes(count, '\0');
  return worker.readExactly(bytes.data(), count) ? bytes : std::string();
}

TEST(TcpPlane, everyByteOfTwoUpdatesIsAsTheFormatSays) {
  for (const bool digest : {true, false}) {
    TransportConfig config = smallConfig(100);
    config.digest = digest;
    OpenChannel channel = openChannel(config, {engineNamed("a")});
    const std::vector<Sample> samples = {
        sampleOf("x", 60), sampleOf("y", 40), sampleOf("z", 1), sampleOf("w", 5)};
    std::string expected =
        frameBytes(1, 0, samples[0].bytes + samples[1].bytes + samples[2].bytes, digest);
    expected += frameBytes(1, 1, samples[3].bytes, digest);
    expected += frameBytes(2, 2, "", false);
    for (int update = 0; update < 2; ++update) {
      ASSERT_TRUE(pushAll(*channel.plane, samples).ok());
      EXPECT_EQ(readBytes(channel.workers[0], expected.size()), expected);
    }
  }
}

TEST(TcpPlane, anUpdateWithoutBytesIsOnlyItsEnd) {
  OpenChannel channel = openChannel(smallConfig(), {engineNamed("a")});
  ASSERT_TRUE(pushAll(*channel.plane, {sampleOf("x", 0), sampleOf("y", 0)}).ok());
  const std::string expected = frameBytes(2, 0, "", false);
  EXPECT_EQ(readBytes(channel.workers[0], expected.size()), expected);
  EXPECT_EQ(channel.plane->bufferBytes(), 0U);
}

TEST(TcpPlane, everyWorkerOfEveryEngineGetsEveryTensor) {
  const std::vector<PlaneEngine> engines = {
      engineNamed("a", 2), engineNamed("b", 1), engineNamed("c", 3)};
  OpenChannel channel = openChannel(smallConfig(1000, 3), engines);
  std::vector<Sample> samples;
  for (int i = 0; i < 60; ++i) {
    samples.push_back(sampleOf("t" + std::to_string(i), (i * 97) % 700));
  }
  samples.push_back(sampleOf("large", 50000));
  samples.push_back(sampleOf("empty", 0));
  std::vector<std::future<std::string>> results;
  std::vector<std::vector<std::string>> got(channel.workers.size());
  for (std::size_t i = 0; i < channel.workers.size(); ++i) {
    results.push_back(std::async(std::launch::async, [&, i] {
      return channel.workers[i].receiveUpdate(manifestOf(samples), 1000, got[i]);
    }));
  }
  EXPECT_TRUE(pushAll(*channel.plane, samples).ok());
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].get(), "");
    ASSERT_EQ(got[i].size(), samples.size());
    for (std::size_t t = 0; t < samples.size(); ++t) {
      EXPECT_EQ(got[i][t], samples[t].bytes) << samples[t].spec.name;
    }
  }
  const std::uint64_t total = manifestOf(samples).bytes();
  EXPECT_EQ(channel.plane->bytesSent(0), 2 * total);
  EXPECT_EQ(channel.plane->bytesSent(1), total);
  EXPECT_EQ(channel.plane->bytesSent(2), 3 * total);
  EXPECT_EQ(channel.plane->bytesSent(9), 0U);
  EXPECT_EQ(channel.plane->inFlightBytes(), 0U);
  EXPECT_EQ(channel.plane->casts(), 0U);
}

TEST(TcpPlane, stridedAndCastTensorsArriveAsDeclared) {
  OpenChannel channel = openChannel(smallConfig(64), {engineNamed("a")});
  const float values[6] = {1, 2, 3, 4, 5, 6};
  TensorView view;
  view.name = "w";
  view.dtype = DType::kFloat32;
  view.shape = {3, 2};
  view.strides = {1, 3};
  view.data = values;
  const TensorSpec spec{"w", DType::kBfloat16, {3, 2}, 0};
  const Manifest manifest{{spec}};
  ASSERT_TRUE(channel.plane->begin(manifest).ok());
  ASSERT_TRUE(channel.plane->put(spec, view, in(kSoon)).ok());
  ASSERT_TRUE(channel.plane->flush(in(kSoon)).ok());
  std::vector<std::string> got;
  ASSERT_EQ(channel.workers[0].receiveUpdate(manifest, 64, got), "");
  // 1, 4, 2, 5, 3, 6 as bfloat16.
  EXPECT_EQ(got[0],
            number(0x3f80, 2) + number(0x4080, 2) + number(0x4000, 2) + number(0x40a0, 2) +
                number(0x4040, 2) + number(0x40c0, 2));
  EXPECT_EQ(channel.plane->casts(), 1U);
  ASSERT_TRUE(channel.plane->begin(manifest).ok());
  EXPECT_EQ(channel.plane->casts(), 0U);
  EXPECT_EQ(channel.plane->bytesSent(0), 0U);
}

TEST(TcpPlane, aCastThatOverflowsFailsThePassAndSendsNothing) {
  OpenChannel channel = openChannel(smallConfig(1), {engineNamed("a")});
  const float value = 1e6F;
  TensorView view;
  view.name = "w";
  view.dtype = DType::kFloat32;
  view.data = &value;
  const TensorSpec spec{"w", DType::kFloat16, {}, 0};
  ASSERT_TRUE(channel.plane->begin({{spec}}).ok());
  const Status status = channel.plane->put(spec, view, in(kSoon));
  EXPECT_EQ(status.code(), Code::kDataMismatch);
  EXPECT_THAT(status.message(), HasSubstr("w float16 []"));
  EXPECT_EQ(channel.plane->flush(in(kSoon)).message(), status.message());
  channel.plane->abort(status);
  const auto frame = channel.workers[0].readFrame();
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->kind, 3U);
}

TEST(TcpPlane, brokenPassesAreRefused) {
  const std::vector<Sample> samples = {sampleOf("x", 10), sampleOf("y", 20)};
  const auto open = [] { return openChannel(smallConfig(), {engineNamed("a")}); };
  {
    OpenChannel channel = open();
    EXPECT_FALSE(channel.plane->put(samples[0].spec, samples[0].view(), in(kSoon)).ok());
  }
  {
    OpenChannel channel = open();
    EXPECT_FALSE(channel.plane->flush(in(kSoon)).ok());
  }
  {
    OpenChannel channel = open();
    ASSERT_TRUE(channel.plane->begin(manifestOf(samples)).ok());
    EXPECT_FALSE(channel.plane->begin(manifestOf(samples)).ok());
    ASSERT_TRUE(channel.plane->put(samples[0].spec, samples[0].view(), in(kSoon)).ok());
    EXPECT_THAT(channel.plane->flush(in(kSoon)).message(), HasSubstr("1 of 2"));
  }
  {
    OpenChannel channel = open();
    ASSERT_TRUE(channel.plane->begin(manifestOf({samples[0]})).ok());
    ASSERT_TRUE(channel.plane->put(samples[0].spec, samples[0].view(), in(kSoon)).ok());
    EXPECT_THAT(channel.plane->put(samples[1].spec, samples[1].view(), in(kSoon)).message(),
                HasSubstr("extra"));
  }
  {
    OpenChannel channel = open();
    ASSERT_TRUE(channel.plane->begin(manifestOf(samples)).ok());
    TensorView view = samples[0].view();
    view.device.kind = Device::Kind::kCuda;
    EXPECT_THAT(channel.plane->put(samples[0].spec, view, in(kSoon)).message(),
                HasSubstr("device memory"));
  }
  TcpPlane plane(smallConfig(), kSoon);
  EXPECT_FALSE(plane.begin(manifestOf(samples)).ok());
  EXPECT_FALSE(plane.open(in(kSoon)).ok());
  EXPECT_FALSE(plane.ready());
}

TEST(TcpPlane, buffersAreAsLargeAsTheLargestChunkAndNoMoreThanNeeded) {
  OpenChannel channel = openChannel(smallConfig(100, 4), {engineNamed("a")});
  ASSERT_TRUE(pushAll(*channel.plane, {sampleOf("x", 30), sampleOf("y", 20)}).ok());
  EXPECT_EQ(channel.plane->bufferBytes(), 50U);
  ASSERT_TRUE(
      pushAll(*channel.plane, {sampleOf("x", 90), sampleOf("y", 200), sampleOf("z", 7)}).ok());
  EXPECT_EQ(channel.plane->bufferBytes(), 290U + 290U);
  channel.plane->releaseBuffers();
  EXPECT_EQ(channel.plane->bufferBytes(), 0U);
  ASSERT_TRUE(pushAll(*channel.plane, {sampleOf("x", 30)}).ok());
  channel.plane->abort(Status(Code::kAborted, "end"));
  EXPECT_EQ(channel.plane->bufferBytes(), 30U);

  TransportConfig freed = smallConfig(100, 4);
  freed.keepBuffers = false;
  OpenChannel other = openChannel(freed, {engineNamed("a")});
  ASSERT_TRUE(pushAll(*other.plane, {sampleOf("x", 30)}).ok());
  other.plane->abort(Status(Code::kAborted, "end"));
  EXPECT_EQ(other.plane->bufferBytes(), 0U);
}

TEST(TcpPlane, updateInfoListsTheManifest) {
  TcpPlane plane(smallConfig(), kSoon);
  const auto info =
      plane.updateInfo({{{"a\"b", DType::kBfloat16, {2, 3}, 0}, {"c", DType::kInt8, {}, 0}}});
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(*info,
            "{\"names\": [\"a\\\"b\", \"c\"], \"dtype_names\": [\"bfloat16\", \"int8\"], "
            "\"shapes\": [[2, 3], []]}");
}

}  // namespace
}  // namespace pushrod::transports::tcp
