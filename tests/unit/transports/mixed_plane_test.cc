// SPDX-License-Identifier: Apache-2.0
#include "transports/mixed_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/transports/shm_fixture.h"

namespace pushrod::transports::shm {
namespace {

using ::testing::ElementsAre;

/// Keeps what it was asked, as the streamed half of a mixed plane.
class NotingPlane final : public DataPlane {
 public:
  explicit NotingPlane(std::vector<std::string>& notes) : notes_(notes) {}

  [[nodiscard]] TransportKind kind() const override { return TransportKind::kTcp; }

  Result<std::vector<std::string>> announce(const ChannelSpec& spec) override {
    std::vector<std::string> texts;
    for (const PlaneEngine& engine : spec.engines) {
      texts.push_back("tcp " + engine.name);
    }
    return texts;
  }

  [[nodiscard]] bool ready() const override { return true; }

  Status open(Deadline) override { return note("open"); }

  Result<std::string> updateInfo(const Manifest&) override { return std::string("whole"); }

  Status begin(const Manifest&) override { return note("begin"); }

  Status put(const TensorSpec& spec, const TensorView&, Deadline) override {
    return note("put " + spec.name);
  }

  Status flush(Deadline) override { return note("flush"); }

  void interrupt(const Status&) noexcept override { notes_.emplace_back("interrupt"); }

  void abort(const Status&) noexcept override { notes_.emplace_back("abort"); }

  [[nodiscard]] std::uint64_t bytesSent(std::size_t engine) const override { return 100 + engine; }

  [[nodiscard]] std::uint64_t casts() const override { return 7; }

  [[nodiscard]] std::uint64_t bufferBytes() const override { return 1000; }

  [[nodiscard]] std::uint64_t inFlightBytes() const override { return 10; }

  void releaseBuffers() override { notes_.emplace_back("release"); }

 private:
  Status note(const std::string& text) {
    notes_.push_back(text);
    return {};
  }

  std::vector<std::string>& notes_;
};

TEST(MixedPlane, EveryTensorGoesToBothAndEveryEngineToItsOwn) {
  std::vector<std::string> notes;
  auto shm = std::make_unique<ShmPlane>(optionsOf(10));
  ShmPlane& chunks = *shm;
  MixedPlane plane(std::make_unique<NotingPlane>(notes), std::move(shm), chunks);
  EXPECT_EQ(plane.kind(), TransportKind::kMixed);
  EXPECT_FALSE(plane.ready());
  ChannelSpec spec;
  spec.engines = {{"t0", 1, ""}, {"e0", 1, ""}, {"t1", 1, ""}, {"e1", 1, ""}};
  const auto infos = plane.announce(spec);
  ASSERT_TRUE(infos.ok());
  EXPECT_THAT(*infos,
              ElementsAre("tcp t0",
                          R"({"protocol": 1, "packed": true})",
                          "tcp t1",
                          R"({"protocol": 1, "packed": true})"));
  ASSERT_TRUE(plane.open(in(kSoon)).ok());
  EXPECT_TRUE(plane.ready());
  const auto samples = samplesOf({10, 5});
  const auto pass = chunks.plan(manifestOf(samples));
  ASSERT_TRUE(chunks.prepare(manifestOf(samples), pass->unique).ok());
  chunks.expect({"e0", "e1"});
  ASSERT_TRUE(plane.begin(manifestOf(samples)).ok());
  for (const Sample& sample : samples) {
    ASSERT_TRUE(plane.put(sample.spec, sample.view(), in(kSoon)).ok());
  }
  ASSERT_TRUE(plane.flush(in(kSoon)).ok());
  chunks.answered("e1", 2);
  EXPECT_EQ(plane.bytesSent(0), 100U);
  EXPECT_EQ(plane.bytesSent(1), 0U);
  EXPECT_EQ(plane.bytesSent(2), 101U);
  EXPECT_EQ(plane.bytesSent(3), 15U);
  EXPECT_EQ(plane.casts(), 7U);
  EXPECT_EQ(plane.bufferBytes(), 1000 + 2 * kPage);
  EXPECT_EQ(plane.updateInfo(Manifest{}).value(), "whole");
  plane.abort(Status(Code::kAborted, "over"));
  EXPECT_FALSE(chunks.ready());
  EXPECT_THAT(notes, ElementsAre("open", "begin", "put a", "put b", "flush", "abort"));
}

}  // namespace
}  // namespace pushrod::transports::shm
