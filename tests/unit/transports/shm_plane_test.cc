// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <fcntl.h>
#include <future>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/transports/shm_fixture.h"

namespace pushrod::transports::shm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What stands in a segment; empty when there is none.
std::string contentOf(const std::string& name) {
  const int fd = ::shm_open(name.c_str(), O_RDONLY, 0);
  if (fd < 0) {
    return {};
  }

  struct stat found {};

  ::fstat(fd, &found);
  std::string text(static_cast<std::size_t>(found.st_size), '\0');
  EXPECT_EQ(::pread(fd, text.data(), text.size(), 0), found.st_size);
  ::close(fd);
  return text;
}

class ShmPass : public ::testing::Test {
 protected:
  /// A plane ready for a pass over tensors of these sizes.
  void open(std::uint64_t buffer, int buffers, const std::vector<std::int64_t>& sizes) {
    plane_ = std::make_unique<ShmPlane>(optionsOf(buffer, buffers));
    samples_ = samplesOf(sizes);
    ChannelSpec spec;
    spec.engines = {{"e0", 1, ""}, {"e1", 2, ""}};
    ASSERT_TRUE(plane_->announce(spec).ok());
    ASSERT_TRUE(plane_->open(in(kSoon)).ok());
    auto pass = plane_->plan(manifestOf(samples_));
    ASSERT_TRUE(pass.ok()) << pass.status().message();
    pass_ = std::move(*pass);
    ASSERT_TRUE(plane_->prepare(manifestOf(samples_), pass_.unique).ok());
    plane_->expect({"e0", "e1"});
    ASSERT_TRUE(plane_->begin(manifestOf(samples_)).ok());
  }

  Status put(std::size_t i, std::chrono::milliseconds limit = kSoon) {
    return plane_->put(samples_[i].spec, samples_[i].view(), in(limit));
  }

  void bothAnswered(std::size_t chunks) {
    plane_->answered("e0", chunks);
    plane_->answered("e1", chunks);
  }

  [[nodiscard]] std::string name() const {
    return segmentName("unit-" + std::to_string(::getpid()), pass_.unique, 0);
  }

  std::unique_ptr<ShmPlane> plane_;
  std::vector<Sample> samples_;
  ChunkPass pass_;
};

TEST_F(ShmPass, InitInfoAndBodiesAreThoseOfTheWireFormat) {
  open(10, 2, {4, 6, 5, 0});
  ChannelSpec spec;
  spec.engines = {{"e0", 1, ""}};
  plane_->abort(Status(Code::kAborted, "anew"));
  const auto infos = plane_->announce(spec);
  ASSERT_TRUE(infos.ok());
  EXPECT_THAT(*infos, ElementsAre(R"({"protocol": 1, "packed": true})"));
  EXPECT_THAT(pass_.ends, ElementsAre(2U, 4U));
  EXPECT_THAT(pass_.packers, ElementsAre(0, 1));
  const std::string job = "unit-" + std::to_string(::getpid());
  const auto segments = [&](const std::string& offset, const std::string& bytes) {
    const std::string rest = "\", \"offset\": " + offset + ", \"bytes\": " + bytes + "}";
    return "\"segments\": {\"h0\": {\"name\": \"/pushrod." + job + "." + pass_.unique + "-0" +
           rest + ", \"h1\": {\"name\": \"/pushrod." + job + "." + pass_.unique + "-1" + rest +
           "}}";
  };
  ASSERT_EQ(pass_.bodies.size(), 2U);
  EXPECT_EQ(*pass_.bodies[0],
            "{\"names\": [\"a\", \"b\"], \"dtype_names\": [\"uint8\", \"uint8\"], \"shapes\": "
            "[[4], [6]], \"tensor_sizes\": [4, 6], " +
                segments("0", "10"));
  EXPECT_EQ(*pass_.bodies[1],
            "{\"names\": [\"c\", \"d\"], \"dtype_names\": [\"uint8\", \"uint8\"], \"shapes\": "
            "[[5], [0]], \"tensor_sizes\": [5, 0], " +
                segments(std::to_string(kPage), "5"));
}

TEST_F(ShmPass, ChunksStandPackedInTheirRegions) {
  open(10, 3, {4, 6, 5, 9});
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(put(i).ok());
  }
  ASSERT_TRUE(plane_->flush(in(kSoon)).ok());
  const std::string content = contentOf(name());
  ASSERT_EQ(content.size(), 3 * kPage);
  EXPECT_EQ(content.substr(0, 11), std::string("aaaabbbbbb\0", 11));
  EXPECT_EQ(content.substr(kPage, 6), std::string("ccccc\0", 6));
  EXPECT_EQ(content.substr(2 * kPage, 10), std::string("ddddddddd\0", 10));
  EXPECT_EQ(plane_->bufferBytes(), 3 * kPage);
}

TEST_F(ShmPass, ARegionIsNotWrittenBeforeEveryEngineHasReadIt) {
  // One tensor per chunk, two regions: chunk 2 goes where chunk 0 stands.
  open(10, 2, {10, 10, 10, 10});
  ASSERT_TRUE(put(0).ok());
  auto second = std::async(std::launch::async, [this] { return put(1); });
  EXPECT_EQ(second.wait_for(kShort), std::future_status::timeout);
  plane_->answered("e0", 1);
  EXPECT_EQ(second.wait_for(kShort), std::future_status::timeout) << "e1 may still read it";
  EXPECT_EQ(contentOf(name()).substr(0, 10), "aaaaaaaaaa");
  plane_->answered("e1", 1);
  EXPECT_TRUE(second.get().ok());
  bothAnswered(2);
  EXPECT_TRUE(put(2).ok());
  EXPECT_EQ(contentOf(name()).substr(0, 10), "cccccccccc");
  // The last chunk waits for nobody: its answer is the engines' goal.
  EXPECT_TRUE(put(3, kShort).ok());
  EXPECT_TRUE(plane_->flush(in(kShort)).ok());
}

TEST_F(ShmPass, MoreBuffersRunFurtherAhead) {
  open(10, 4, {10, 10, 10, 10, 10, 10});
  EXPECT_TRUE(put(0, kShort).ok());
  EXPECT_TRUE(put(1, kShort).ok());
  EXPECT_TRUE(put(2, kShort).ok());
  const Status late = put(3, kShort);
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(late.origin().engine.empty());
}

TEST_F(ShmPass, AnInterruptEndsTheWaitAndHoldsUntilTheNextPass) {
  open(10, 2, {10, 10, 10});
  ASSERT_TRUE(put(0).ok());
  auto waiting = std::async(std::launch::async, [this] { return put(1); });
  EXPECT_EQ(waiting.wait_for(kShort), std::future_status::timeout);
  plane_->interrupt(Status(Code::kUnavailable, "e1 refused chunk 0"));
  EXPECT_EQ(waiting.get().message(), "e1 refused chunk 0");
  EXPECT_EQ(put(2).message(), "e1 refused chunk 0") << "the pass is over";
  plane_->abort(Status(Code::kAborted, "anew"));
  EXPECT_FALSE(plane_->ready());
  plane_->expect({"e0", "e1"});
  ASSERT_TRUE(plane_->begin(manifestOf(samples_)).ok());
  EXPECT_TRUE(put(0).ok());
  bothAnswered(1);
  EXPECT_TRUE(put(1).ok());
}

TEST_F(ShmPass, ARankThatExpectsNobodyWaitsForNobody) {
  open(10, 2, {10, 10, 10, 10});
  plane_->expect({});
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(put(i, kShort).ok());
  }
}

TEST_F(ShmPass, BytesCountOnceAnsweredForEachWorker) {
  open(10, 3, {4, 6, 5});
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(put(i).ok());
  }
  EXPECT_EQ(plane_->bytesSent(0), 0U);
  EXPECT_EQ(plane_->inFlightBytes(), 15U);
  plane_->answered("e0", 2);
  plane_->answered("e1", 1);
  EXPECT_EQ(plane_->bytesSent(0), 15U);
  EXPECT_EQ(plane_->bytesSent(1), 20U) << "two workers";
  EXPECT_EQ(plane_->inFlightBytes(), 5U);
  EXPECT_EQ(plane_->bytesSent(2), 0U);
}

TEST_F(ShmPass, AManifestWithoutBytesIsOneChunkInAnExistingSegment) {
  open(10, 2, {0, 0});
  EXPECT_THAT(pass_.ends, ElementsAre(2U));
  EXPECT_THAT(*pass_.bodies[0], HasSubstr("\"offset\": 0, \"bytes\": 0}"));
  EXPECT_TRUE(put(0).ok());
  EXPECT_TRUE(put(1).ok());
  EXPECT_TRUE(plane_->flush(in(kSoon)).ok());
  EXPECT_EQ(contentOf(name()).size(), kPage);
}

TEST_F(ShmPass, WhatWasNotPreparedIsRefused) {
  open(10, 2, {4, 6});
  EXPECT_EQ(plane_->begin(manifestOf(samplesOf({4, 6, 1}))).code(), Code::kInternal);
  ASSERT_TRUE(plane_->begin(manifestOf(samples_)).ok());
  const auto larger = samplesOf({11});
  EXPECT_EQ(plane_->put(larger[0].spec, larger[0].view(), in(kSoon)).code(), Code::kInternal);
  ASSERT_TRUE(plane_->begin(manifestOf(samples_)).ok());
  ASSERT_TRUE(put(0).ok());
  EXPECT_EQ(plane_->flush(in(kSoon)).code(), Code::kDataMismatch) << "half a pass";
  ASSERT_TRUE(put(1).ok());
  EXPECT_EQ(put(0).code(), Code::kDataMismatch) << "an extra tensor";
}

TEST_F(ShmPass, TheSegmentGrowsIsGivenBackAndIsRemovedWithThePlane) {
  open(3 * kPage, 2, {100, 100});
  EXPECT_EQ(contentOf(name()).size(), kPage);
  plane_->releaseBuffers();
  EXPECT_EQ(plane_->bufferBytes(), kPage) << "a pass is under way";
  ASSERT_TRUE(put(0).ok());
  ASSERT_TRUE(put(1).ok());
  ASSERT_TRUE(plane_->flush(in(kSoon)).ok());
  const Manifest larger = manifestOf(samplesOf({2 * kPage, 2 * kPage}));
  const auto pass = plane_->plan(larger);
  ASSERT_TRUE(pass.ok());
  EXPECT_EQ(pass->unique, pass_.unique) << "one name for the coordinator's life";
  ASSERT_TRUE(plane_->prepare(larger, pass->unique).ok());
  EXPECT_EQ(contentOf(name()).size(), 4 * kPage);
  plane_->releaseBuffers();
  EXPECT_EQ(plane_->bufferBytes(), 0U);
  EXPECT_EQ(contentOf(name()), "");
  ASSERT_TRUE(plane_->prepare(larger, pass->unique).ok());
  plane_.reset();
  EXPECT_EQ(contentOf(name()), "");
}

TEST(ShmPlane, CastsAreDoneInTheSegment) {
  ShmPlane plane(optionsOf(100));
  Manifest manifest;
  manifest.tensors.push_back({"w", DType::kBfloat16, {2}, 0});
  const auto pass = plane.plan(manifest);
  ASSERT_TRUE(pass.ok());
  ASSERT_TRUE(plane.prepare(manifest, pass->unique).ok());
  ASSERT_TRUE(plane.begin(manifest).ok());
  const float values[] = {1.0F, -2.0F};
  TensorView view;
  view.name = "w";
  view.dtype = DType::kFloat32;
  view.shape = {2};
  view.data = values;
  ASSERT_TRUE(plane.put(manifest.tensors[0], view, in(kSoon)).ok());
  EXPECT_EQ(plane.casts(), 1U);
  const std::string content =
      contentOf(segmentName("unit-" + std::to_string(::getpid()), pass->unique, 0));
  EXPECT_EQ(content.substr(0, 4), std::string("\x80\x3f\x00\xc0", 4));
}

TEST(ShmPlane, ATensorAboveTheBufferIsRefusedNamingKeyAndSize) {
  ShmPlane plane(optionsOf(100));
  const auto pass = plane.plan(manifestOf(samplesOf({10, 101, 300})));
  ASSERT_FALSE(pass.ok());
  EXPECT_EQ(pass.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(pass.status().message(), HasSubstr("transport.buffer to at least 300 bytes"));
  EXPECT_THAT(pass.status().message(), HasSubstr("'b uint8 [101]'"));
}

TEST(ShmPlane, OnARankThatDoesNotPackItHoldsNothing) {
  ShmPlane plane(optionsOf(100, 2, 2));
  EXPECT_TRUE(plane.begin(manifestOf(samplesOf({10}))).ok());
  EXPECT_EQ(plane.bufferBytes(), 0U);
  EXPECT_TRUE(plane.flush(in(kSoon)).ok());
}

TEST(ShmPlane, DeviceMemoryIsRefused) {
  ShmPlane plane(optionsOf(100));
  const auto samples = samplesOf({10});
  const auto pass = plane.plan(manifestOf(samples));
  ASSERT_TRUE(plane.prepare(manifestOf(samples), pass->unique).ok());
  ASSERT_TRUE(plane.begin(manifestOf(samples)).ok());
  TensorView view = samples[0].view();
  view.device = {Device::Kind::kCuda, 0};
  const Status refused = plane.put(samples[0].spec, view, in(kSoon));
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("transport shm"));
}

TEST(ShmPlane, TakesChunksAndIsNoStream) {
  ShmPlane plane(optionsOf(100));
  EXPECT_EQ(plane.kind(), TransportKind::kShm);
  EXPECT_TRUE(plane.takes("e1"));
  EXPECT_FALSE(plane.takes("other"));
  EXPECT_EQ(plane.updateInfo(Manifest{}).status().code(), Code::kInternal);
}

}  // namespace
}  // namespace pushrod::transports::shm
