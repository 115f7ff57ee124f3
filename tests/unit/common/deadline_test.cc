// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include <gtest/gtest.h>

#include <pushrod/deadline.h>

namespace pushrod {
namespace {

class StillClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return TimePoint{} + at; }

  std::chrono::nanoseconds at{};
};

TEST(Deadline, WhatIsLeftIsRoundedUpSoThatZeroMeansPassed) {
  StillClock clock;
  const Deadline deadline = Deadline::after(clock, Duration{5});
  EXPECT_EQ(deadline.remaining(clock), Duration{5});
  clock.at = std::chrono::microseconds(4999);
  EXPECT_EQ(deadline.remaining(clock), Duration{1});
  EXPECT_FALSE(deadline.passed(clock));
  clock.at = std::chrono::milliseconds(5);
  EXPECT_EQ(deadline.remaining(clock), Duration::zero());
  EXPECT_TRUE(deadline.passed(clock));
  clock.at = std::chrono::hours(1);
  EXPECT_EQ(deadline.remaining(clock), Duration::zero());
}

TEST(Deadline, TheEarlierOneHolds) {
  const StillClock clock;
  const Deadline near = Deadline::after(clock, Duration{1});
  const Deadline far = Deadline::after(clock, Duration{9});
  EXPECT_EQ(near.earliest(far).when(), near.when());
  EXPECT_EQ(far.earliest(near).when(), near.when());
  EXPECT_EQ(Deadline::never().earliest(far).when(), far.when());
}

TEST(Deadline, NeverIsAYearForThoseWhoMustSayANumber) {
  const StillClock clock;
  EXPECT_TRUE(Deadline::never().isNever());
  EXPECT_FALSE(Deadline::never().passed(clock));
  EXPECT_EQ(Deadline::never().remaining(clock), Duration{std::chrono::hours(24 * 365)});
}

}  // namespace
}  // namespace pushrod
