// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <gtest/gtest.h>

#include "common/hash.h"
#include "common/ids.h"
#include "common/time_text.h"

namespace pushrod::common {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(TimeText, UtcWithMilliseconds) {
  const std::chrono::system_clock::time_point epoch;
  EXPECT_EQ(utcText(epoch), "1970-01-01T00:00:00.000Z");
  // 951782400 s: the leap day of 2000, noon is 12 h later.
  EXPECT_EQ(utcText(epoch + seconds(951782400 + 12 * 3600) + milliseconds(7)),
            "2000-02-29T12:00:00.007Z");
}

TEST(TimeText, DurationsAreForPeople) {
  EXPECT_EQ(durationText(milliseconds(350)), "350 ms");
  EXPECT_EQ(durationText(milliseconds(4200)), "4.2 s");
  EXPECT_EQ(durationText(seconds(185)), "3 min 5 s");
}

TEST(Ids, AreLongDifferentAndHexadecimal) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string text = toHex(randomId());
    EXPECT_EQ(text.size(), 32U);
    EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos);
    seen.insert(text);
  }
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_EQ(toHex(Id{0x00, 0x0f, 0xa0}), "000fa000000000000000000000000000");
}

TEST(Hash, IsFowlerNollVo1aOf64Bits) {
  // The published test values of FNV-1a.
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325ULL);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cULL);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8ULL);
}

}  // namespace
}  // namespace pushrod::common
