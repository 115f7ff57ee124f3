// SPDX-License-Identifier: Apache-2.0
#include "tools/engine_orders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pushrod::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(VersionObjections, NoneWhereAllAgree) {
  EXPECT_THAT(versionObjections({"7"}), ElementsAre(""));
  EXPECT_THAT(versionObjections({"7", "7"}), ElementsAre("", ""));
  EXPECT_THAT(versionObjections({}), IsEmpty());
}

TEST(VersionObjections, TheFewStandAgainstTheMany) {
  EXPECT_THAT(versionObjections({"8", "7", "7", ""}),
              ElementsAre(HasSubstr("others' is 7"), "", "", HasSubstr("not known")));
}

TEST(VersionObjections, ATieIsNobodysVersion) {
  EXPECT_THAT(versionObjections({"7", "8"}),
              ElementsAre(HasSubstr("do not agree"), HasSubstr("do not agree")));
  EXPECT_THAT(versionObjections({"", ""}),
              ElementsAre(HasSubstr("not known"), HasSubstr("not known")));
}

}  // namespace
}  // namespace pushrod::tools
