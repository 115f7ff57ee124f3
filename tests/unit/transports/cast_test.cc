// SPDX-License-Identifier: Apache-2.0
#include "transports/cast.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace pushrod::transports {
namespace {

/// Value of a small float format by the definition of IEEE 754: sign, exponent, mantissa.
double valueOf(std::uint16_t bits, int exponentBits, int mantissaBits) {
  const int bias = (1 << (exponentBits - 1)) - 1;
  const int exponent = (bits >> mantissaBits) & ((1 << exponentBits) - 1);
  const int mantissa = bits & ((1 << mantissaBits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponentBits) - 1) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  return exponent == 0
             ? sign * std::ldexp(mantissa, 1 - bias - mantissaBits)
             : sign * std::ldexp(mantissa + (1 << mantissaBits), exponent - bias - mantissaBits);
}

/// Rounds to the nearest value of a small format, ties to even, with plain double arithmetic.
double roundedTo(double value, int exponentBits, int mantissaBits) {
  const int bias = (1 << (exponentBits - 1)) - 1;
  if (value == 0 || !std::isfinite(value)) {
    return value;
  }
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  const double unit = std::ldexp(1.0, exponent - mantissaBits);
  const double rounded = std::nearbyint(value / unit) * unit;
  const double limit = std::ldexp(1.0, bias + 1);
  return std::fabs(rounded) >= limit ? std::copysign(INFINITY, value) : rounded;
}

template <typename To, typename From>
To castOne(DType from, From value, DType to, bool* sound = nullptr) {
  To out{};
  const bool good = castElements(
      from, reinterpret_cast<const std::byte*>(&value), to, reinterpret_cast<std::byte*>(&out), 1);
  if (sound != nullptr) {
    *sound = good;
  }
  return out;
}

struct Small {
  DType dtype;
  int exponentBits;
  int mantissaBits;
};

const Small kSmalls[] = {{DType::kFloat16, 5, 10}, {DType::kBfloat16, 8, 7}};

TEST(Cast, every16BitSourceWidensExactly) {
  for (const Small& small : kSmalls) {
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
      const auto source = static_cast<std::uint16_t>(bits);
      const double expected = valueOf(source, small.exponentBits, small.mantissaBits);
      const auto single = castOne<float>(small.dtype, source, DType::kFloat32);
      const auto twice = castOne<double>(small.dtype, source, DType::kFloat64);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(single) && std::isnan(twice)) << bits;
        continue;
      }
      ASSERT_EQ(single, expected) << bits;
      ASSERT_EQ(twice, expected) << bits;
      ASSERT_EQ(std::signbit(single), (bits & 0x8000) != 0) << bits;
    }
  }
}

TEST(Cast, every16BitValueComesBackFromWider) {
  for (const Small& small : kSmalls) {
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
      const auto source = static_cast<std::uint16_t>(bits);
      if (std::isnan(valueOf(source, small.exponentBits, small.mantissaBits))) {
        continue;
      }
      const auto single = castOne<float>(small.dtype, source, DType::kFloat32);
      const auto twice = castOne<double>(small.dtype, source, DType::kFloat64);
      ASSERT_EQ(castOne<std::uint16_t>(DType::kFloat32, single, small.dtype), source);
      ASSERT_EQ(castOne<std::uint16_t>(DType::kFloat64, twice, small.dtype), source);
    }
  }
}

TEST(Cast, between16BitFormatsRoundsToNearestEven) {
  for (const Small& from : kSmalls) {
    const Small& to = from.dtype == DType::kFloat16 ? kSmalls[1] : kSmalls[0];
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
      const auto source = static_cast<std::uint16_t>(bits);
      const double value = valueOf(source, from.exponentBits, from.mantissaBits);
      bool sound = false;
      const auto out = castOne<std::uint16_t>(from.dtype, source, to.dtype, &sound);
      const double got = valueOf(out, to.exponentBits, to.mantissaBits);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(got) && sound) << bits;
        continue;
      }
      const double expected = roundedTo(value, to.exponentBits, to.mantissaBits);
      ASSERT_EQ(got, expected) << bits;
      ASSERT_EQ(sound, std::isinf(expected) == std::isinf(value)) << bits;
    }
  }
}

TEST(Cast, narrowingAroundEveryTieRoundsToNearestEven) {
  for (const Small& small : kSmalls) {
    for (std::uint32_t bits = 0; bits < 0x7fff; ++bits) {
      const double low =
          valueOf(static_cast<std::uint16_t>(bits), small.exponentBits, small.mantissaBits);
      const double high =
          valueOf(static_cast<std::uint16_t>(bits + 1), small.exponentBits, small.mantissaBits);
      if (!std::isfinite(low) || !std::isfinite(high)) {
        continue;
      }
      const double tie = low + (high - low) / 2;
      for (const double value : {tie, std::nextafter(tie, low), std::nextafter(tie, high)}) {
        const auto out = castOne<std::uint16_t>(DType::kFloat64, -value, small.dtype);
        ASSERT_EQ(valueOf(out, small.exponentBits, small.mantissaBits),
                  roundedTo(-value, small.exponentBits, small.mantissaBits))
            << value;
      }
      for (const float value : {static_cast<float>(tie),
                                std::nextafterf(static_cast<float>(tie), 0.0F),
                                std::nextafterf(static_cast<float>(tie), INFINITY)}) {
        const auto out = castOne<std::uint16_t>(DType::kFloat32, value, small.dtype);
        ASSERT_EQ(valueOf(out, small.exponentBits, small.mantissaBits),
                  roundedTo(value, small.exponentBits, small.mantissaBits))
            << value;
      }
    }
  }
}

TEST(Cast, knownBitPatterns) {
  struct Row {
    float value;
    std::uint16_t half;
    std::uint16_t brain;
  };

  const Row rows[] = {{1.0F, 0x3c00, 0x3f80},
                      {-2.0F, 0xc000, 0xc000},
                      {0.0F, 0x0000, 0x0000},
                      {-0.0F, 0x8000, 0x8000},
                      {65504.0F, 0x7bff, 0x4780},
                      {65519.996F, 0x7bff, 0x4780},
                      {0x1p-24F, 0x0001, 0x3380},
                      {0x1p-25F, 0x0000, 0x3300},
                      {0x1.8p-25F, 0x0001, 0x3340},
                      {INFINITY, 0x7c00, 0x7f80},
                      {-INFINITY, 0xfc00, 0xff80}};
  for (const Row& row : rows) {
    bool sound = false;
    EXPECT_EQ(castOne<std::uint16_t>(DType::kFloat32, row.value, DType::kFloat16, &sound), row.half)
        << row.value;
    EXPECT_TRUE(sound);
    EXPECT_EQ(castOne<std::uint16_t>(DType::kFloat32, row.value, DType::kBfloat16), row.brain)
        << row.value;
  }
}

TEST(Cast, finiteToInfiniteIsReported) {
  bool sound = true;
  EXPECT_EQ(castOne<std::uint16_t>(DType::kFloat32, 65520.0F, DType::kFloat16, &sound), 0x7c00);
  EXPECT_FALSE(sound);
  EXPECT_EQ(castOne<std::uint16_t>(
                DType::kFloat32, std::numeric_limits<float>::max(), DType::kBfloat16, &sound),
            0x7f80);
  EXPECT_FALSE(sound);
  EXPECT_TRUE(std::isinf(castOne<float>(DType::kFloat64, -1e300, DType::kFloat32, &sound)));
  EXPECT_FALSE(sound);
  EXPECT_EQ(castOne<std::uint16_t>(DType::kFloat64, -1e300, DType::kFloat16, &sound), 0xfc00);
  EXPECT_FALSE(sound);
}

TEST(Cast, nanStaysNanWhateverItsPayload) {
  for (const std::uint32_t bits : {0x7f800001U, 0x7fc00000U, 0xff80ffffU, 0x7f802000U}) {
    bool sound = false;
    const auto value = std::bit_cast<float>(bits);
    const auto half = castOne<std::uint16_t>(DType::kFloat32, value, DType::kFloat16, &sound);
    EXPECT_TRUE(sound && std::isnan(valueOf(half, 5, 10)));
    const auto brain = castOne<std::uint16_t>(DType::kFloat32, value, DType::kBfloat16, &sound);
    EXPECT_TRUE(sound && std::isnan(valueOf(brain, 8, 7)));
  }
  bool sound = false;
  const auto signalling = std::bit_cast<double>(std::uint64_t{0x7ff0000000000001});
  EXPECT_TRUE(std::isnan(castOne<float>(DType::kFloat64, signalling, DType::kFloat32, &sound)));
  EXPECT_TRUE(sound);
  const auto half = castOne<std::uint16_t>(DType::kFloat64, signalling, DType::kFloat16, &sound);
  EXPECT_TRUE(sound && std::isnan(valueOf(half, 5, 10)));
}

TEST(Cast, oneOverflowAmongManyIsFoundAndUnalignedMemoryWorks) {
  for (const std::size_t bad : {0U, 1U, 40U, 66U}) {
    std::vector<float> values(67, 1.5F);
    values[bad] = 1e6F;
    std::vector<std::byte> source(values.size() * 4 + 1);
    std::memcpy(source.data() + 1, values.data(), values.size() * 4);
    std::vector<std::byte> target(values.size() * 2 + 1);
    EXPECT_FALSE(castElements(
        DType::kFloat32, source.data() + 1, DType::kFloat16, target.data() + 1, values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint16_t out = 0;
      std::memcpy(&out, target.data() + 1 + 2 * i, 2);
      EXPECT_EQ(out, i == bad ? 0x7c00 : 0x3e00);
    }
  }
}

TEST(Cast, onlyTheFourFloatsAreCastable) {
  int castable = 0;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    castable += isCastable(static_cast<DType>(i)) ? 1 : 0;
  }
  EXPECT_EQ(castable, 4);
  EXPECT_FALSE(isCastable(DType::kFloat8E4m3fn));
  EXPECT_FALSE(isCastable(DType::kInt32));
}

}  // namespace
}  // namespace pushrod::transports
