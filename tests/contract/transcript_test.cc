// SPDX-License-Identifier: Apache-2.0
// The reader of transcripts, and what every profile's must hold.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <boost/json/parse.hpp>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "tests/contract/arms.h"

namespace pushrod::contract {
namespace {

/// Files of one test, in a folder of its own.
class TranscriptTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "transcript_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<Transcript> load(const std::string& text) {
    write("x", text);
    return Transcript::load(folder_, "x");
  }

  void write(const std::string& profile, const std::string& text) {
    std::ofstream(folder_ + "/" + profile + ".txt") << text;
  }

  std::string folder_;
};

TEST_F(TranscriptTest, AScenesPassagesComeInOrderWithWhatItIncludes) {
  write("old", "scene a\n> GET /a -\n< 200 c1 old\nscene b\n> GET /b -\n< 204 c2 -\n");
  const auto transcript = load(
      "# a comment\nbase old\n\nscene a\n> GET /a?q=1 -\n< 200 c1 {\"a b\": 1}\n"
      "scene both\ninclude b\ninclude a\n> POST /c {\"k\":\"<string>\"}\n< 500 c3 x y\n"
      "absent none there is nothing\n");
  ASSERT_TRUE(transcript.ok()) << transcript.status().message();
  const auto both = transcript->scene("both");
  ASSERT_TRUE(both.ok()) << both.status().message();
  ASSERT_EQ(both->size(), 3U);
  EXPECT_EQ((*both)[0].target, "/b");
  EXPECT_EQ((*both)[0].status, 204);
  EXPECT_EQ((*both)[0].body, "");
  EXPECT_EQ((*both)[1].target, "/a?q=1");
  EXPECT_EQ((*both)[1].body, "{\"a b\": 1}");
  EXPECT_EQ((*both)[2].source, "c3");
  const auto none = transcript->scene("none");
  EXPECT_EQ(none.status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(none.status().message(), "there is nothing");
  EXPECT_EQ(transcript->scene("unknown").status().code(), Code::kInvalidArgument);
}

TEST_F(TranscriptTest, WhatIsNotTheFormatIsRefused) {
  for (const char* text : {"> GET /a -\n",
                           "scene a\n> GET a -\n",
                           "scene a\n> GET /a\n",
                           "scene a\n> POST /a {\n",
                           "scene a\n< 200 c1 x\n",
                           "scene a\n> GET /a -\n< 200 c1\n",
                           "scene a\n> GET /a -\n< ok c1 x\n",
                           "scene a\n> GET /a -\n< 200 c1 x\n< 200 c1 x\n",
                           "scene a\nscene a\n",
                           "absent a\n",
                           "absent a why\n> GET /a -\n",
                           "scene a\nelse\n",
                           "base y\n"}) {
    EXPECT_FALSE(load(text).ok()) << text;
  }
  const auto open = load("scene a\n> GET /a -\n> GET /b -\n< 200 c1 x\n");
  EXPECT_FALSE(open.ok() && open->scene("a").ok());
}

TEST(ShapeTest, KeysAndValuesAreTheSameSaveForPlaceholders) {
  const auto shape = boost::json::parse(R"({"k":"<object>","s":"<string>","n":1,"l":["a"]})");
  const auto list = boost::json::parse(R"([{"at":"<number>"}])");
  EXPECT_TRUE(fits(list, boost::json::parse(R"([{"at":7}])")));
  EXPECT_FALSE(fits(list, boost::json::parse(R"([{"at":"7"}])")));
  EXPECT_FALSE(fits(list, boost::json::parse(R"([{"at":7},{"at":8}])")));
  const auto matches = [&shape](const char* text) { return fits(shape, boost::json::parse(text)); };
  EXPECT_TRUE(matches(R"({"s":"x","k":{"any":[1]},"l":["a"],"n":1})"));
  EXPECT_FALSE(matches(R"({"s":"x","k":{},"l":["a"],"n":2})"));
  EXPECT_FALSE(matches(R"({"s":"x","k":{},"l":["b"],"n":1})"));
  EXPECT_FALSE(matches(R"({"s":7,"k":{},"l":["a"],"n":1})"));
  EXPECT_FALSE(matches(R"({"s":"x","k":[],"l":["a"],"n":1})"));
  EXPECT_FALSE(matches(R"({"s":"x","k":{},"l":["a"]})"));
  EXPECT_FALSE(matches(R"({"s":"x","k":{},"l":["a"],"n":1,"more":1})"));
  EXPECT_FALSE(matches("[]"));
}

TEST(TranscriptsTest, EveryProfileHasEverySceneOfTheNewestOne) {
  const auto newest = Transcript::load(transcripts(), "0.32");
  ASSERT_TRUE(newest.ok()) << newest.status().message();
  EXPECT_GT(newest->names().size(), 20U);
  for (const Setting& setting : settings()) {
    const auto transcript = Transcript::load(transcripts(), setting.profile);
    ASSERT_TRUE(transcript.ok()) << transcript.status().message();
    EXPECT_EQ(transcript->names(), newest->names()) << setting;
    for (const std::string& name : transcript->names()) {
      const auto scene = transcript->scene(name);
      EXPECT_TRUE(scene.ok() || scene.status().code() == Code::kFailedPrecondition)
          << setting << ": " << scene.status().message();
    }
  }
}

// The server must be as strict as it says; its own failures are caught here.
TEST(CannedEngineTest, AnotherRequestAndOneThatNeverCameFailTheTest) {
  const Passage paused{"GET", "/is_paused", nullptr, 200, "c1.4", R"({"is_paused":true})", 1};
  const auto failuresOf = [](std::vector<Passage> passages, CallKind asked) {
    ::testing::TestPartResultArray results;
    const ::testing::ScopedFakeTestPartResultReporter catching(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
    {
      const CannedEngine engine(std::move(passages));
      BlockingClient client(engine.port());
      (void)client.run(asked);
    }
    std::string all;
    for (int i = 0; i < results.size(); ++i) {
      all += results.GetTestPartResult(i).message();
    }
    return all;
  };
  EXPECT_EQ(failuresOf({paused}, CallKind::kReadPaused), "");
  EXPECT_TRUE(has(failuresOf({paused}, CallKind::kReadVersion), "expects GET /is_paused"));
  EXPECT_TRUE(has(failuresOf({}, CallKind::kReadPaused), "the transcript is over"));
  EXPECT_TRUE(has(failuresOf({paused, paused}, CallKind::kReadPaused), "never came"));
  Passage start = paused;
  start.method = "POST";
  start.target = "/start_weight_update";
  start.shape = boost::json::parse(R"({"other":1})");
  EXPECT_TRUE(has(failuresOf({start}, CallKind::kStart), "with another body"));
  start.shape = nullptr;
  EXPECT_TRUE(has(failuresOf({start}, CallKind::kStart), "without a body"));
}

}  // namespace
}  // namespace pushrod::contract
