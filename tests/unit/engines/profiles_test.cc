// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/profiles.h"

#include <gtest/gtest.h>

namespace pushrod::engines::vllm {
namespace {

EngineFeatures featuresOf(const std::string& version, const std::string& configured = "auto") {
  const auto choice = chooseProfile(version, configured, UnknownProfile::kRefuse);
  EXPECT_TRUE(choice.ok()) << version << ": " << choice.status().message();
  return choice ? choice->features : EngineFeatures{};
}

/// One row of the contract's version table: a 'y' or '-' per release, in the order of kReleases.
struct Row {
  bool EngineFeatures::*feature;
  std::string_view cells;
};

constexpr std::array<std::string_view, 12> kReleases = {"0.22.1",
                                                        "0.23",
                                                        "0.24",
                                                        "0.25.1",
                                                        "0.26",
                                                        "0.27.1",
                                                        "0.28",
                                                        "0.29",
                                                        "0.30",
                                                        "0.31",
                                                        "0.32",
                                                        "0.33"};

TEST(ProfilesTest, EveryRowOfTheContractsVersionTable) {
  constexpr std::array<Row, 11> kRows = {{
      {&EngineFeatures::failedUpdateCloses, "-yyyyyyyyyyy"},
      {&EngineFeatures::ncclPackedInInit, "------yyyyyy"},
      {&EngineFeatures::ipcPackedInInit, "-----yyyyyyy"},
      {&EngineFeatures::hasDraft, "----yyyyyyyy"},
      {&EngineFeatures::prefixResetAnswers, "----yyyyyyyy"},
      {&EngineFeatures::hasVersion, "-----yyyyyyy"},
      {&EngineFeatures::hasUniqueId, "--------yyyy"},
      {&EngineFeatures::updateIsTyped, "----------yy"},
      {&EngineFeatures::hasShutdown, "----------yy"},
      {&EngineFeatures::hasChecker, "----------yy"},
      {&EngineFeatures::reusesMetadata, "-----------y"},
  }};
  for (std::size_t row = 0; row < kRows.size(); ++row) {
    for (std::size_t i = 0; i < kReleases.size(); ++i) {
      const EngineFeatures features = featuresOf(std::string(kReleases[i]));
      EXPECT_EQ(features.*kRows[row].feature, kRows[row].cells[i] == 'y')
          << "row " << row << ", release " << kReleases[i];
    }
  }
}

TEST(ProfilesTest, ReleasesBetweenTwoProfilesSpeakTheEarlierOne) {
  EXPECT_EQ(featuresOf("0.24.0").profile, "0.23");
  EXPECT_EQ(featuresOf("0.29.0").profile, "0.28");
  EXPECT_EQ(featuresOf("0.31.2").profile, "0.30");
  EXPECT_EQ(featuresOf("0.33.0").profile, "0.33");
}

TEST(ProfilesTest, SuffixesOfAReleaseDoNotMatter) {
  for (const char* text : {"0.28",
                           "0.28.1",
                           "v0.28.0",
                           "0.28.0+cpu",
                           "0.28.1.dev5+g12ab",
                           "0.28.0rc1",
                           "0.28.0.post1",
                           "0.28-ascend",
                           "0.28.0.dev"}) {
    EXPECT_EQ(featuresOf(text).profile, "0.28") << text;
  }
}

TEST(ProfilesTest, GarbageFollowsUnknownProfile) {
  for (const char* text : {"",
                           "dev",
                           "main",
                           "nightly",
                           "0",
                           "0.",
                           ".28",
                           "0.x",
                           "-0.28",
                           "0.-1",
                           "28",
                           "0.28x",
                           "0 .28",
                           "99999999999999999999.1"}) {
    const auto refused = chooseProfile(text, "auto", UnknownProfile::kRefuse);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_EQ(refused.status().code(), Code::kFailedPrecondition);
    EXPECT_NE(refused.status().message().find("engines.unknown_profile"), std::string::npos);
    const auto newest = chooseProfile(text, "auto", UnknownProfile::kNewest);
    ASSERT_TRUE(newest.ok()) << text;
    EXPECT_EQ(newest->features.profile, "0.33");
    EXPECT_FALSE(newest->warning.empty());
  }
}

TEST(ProfilesTest, NewerReleasesFollowUnknownProfile) {
  for (const char* text : {"0.34.0", "0.40", "1.0.0", "1.22"}) {
    EXPECT_FALSE(chooseProfile(text, "auto", UnknownProfile::kRefuse).ok()) << text;
    const auto newest = chooseProfile(text, "auto", UnknownProfile::kNewest);
    ASSERT_TRUE(newest.ok()) << text;
    EXPECT_EQ(newest->features.profile, "0.33");
    EXPECT_NE(newest->warning.find(text), std::string::npos);
  }
}

TEST(ProfilesTest, ReleasesBeforeTheFirstAreRefusedAlways) {
  const auto choice = chooseProfile("0.21.3", "auto", UnknownProfile::kNewest);
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.status().code(), Code::kFailedPrecondition);
}

TEST(ProfilesTest, ConfigurationOverridesTheVersion) {
  EXPECT_EQ(featuresOf("0.33.0", "0.27").profile, "0.27");
  EXPECT_EQ(featuresOf("garbage", "0.28.1").profile, "0.28");
  EXPECT_EQ(featuresOf("0.28.0", "main").profile, "main");
  EXPECT_EQ(featuresOf("0.28.0", "0.50").profile, "0.33");
  EXPECT_EQ(featuresOf("0.28.0", "").profile, "0.28");
  for (const char* text : {"newest", "0.1", "28"}) {
    const auto choice = chooseProfile("0.28.0", text, UnknownProfile::kNewest);
    ASSERT_FALSE(choice.ok()) << text;
    EXPECT_EQ(choice.status().code(), Code::kInvalidArgument);
  }
}

TEST(ProfilesTest, MainIsNeverChosenByAVersion) {
  EXPECT_EQ(profiles().back().name, "main");
  for (const Profile& profile : profiles()) {
    EXPECT_EQ(profile.features().profile, profile.name);
  }
}

}  // namespace
}  // namespace pushrod::engines::vllm
