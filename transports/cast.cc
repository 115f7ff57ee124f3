// SPDX-License-Identifier: Apache-2.0
#include "transports/cast.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/check.h"

namespace pushrod::transports {

namespace {

static_assert(std::endian::native == std::endian::little, "tensor bytes travel little-endian");

/// Loads and stores go through memcpy: packed tensors and mapped files promise no alignment.
template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

/// `yes` or `no` without a branch: the compiler then computes both and vectorises the loop, which
/// it does not when one side holds float arithmetic under a condition.
std::uint32_t choose(bool condition, std::uint32_t yes, std::uint32_t no) {
  const std::uint32_t mask = 0U - static_cast<std::uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

// The four formats by their bits. `toFloat` is exact; `fromFloat` rounds to nearest even. Branches
// are plain selections, so that the loops can be vectorised.

struct Float32 {
  using Bits = std::uint32_t;
  static constexpr Bits kInfinity = 0x7f800000U;

  static float toFloat(Bits bits) { return std::bit_cast<float>(bits); }

  static Bits fromFloat(float value) { return std::bit_cast<Bits>(value); }
};

struct Float64 {
  using Bits = std::uint64_t;
  static constexpr Bits kInfinity = 0x7ff0000000000000ULL;

  static Bits fromFloat(float value) { return std::bit_cast<Bits>(static_cast<double>(value)); }
};

struct Bfloat16 {
  using Bits = std::uint16_t;
  static constexpr Bits kInfinity = 0x7f80U;

  static float toFloat(Bits bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
  }

  static Bits fromFloat(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
    // The quiet bit keeps a NaN whose payload sits in the lower half from becoming an infinity.
    const std::uint32_t nan = (bits >> 16U) | 0x40U;
    return static_cast<Bits>((bits & 0x7fffffffU) > Float32::kInfinity ? nan : rounded);
  }
};

struct Float16 {
  using Bits = std::uint16_t;
  static constexpr Bits kInfinity = 0x7c00U;

  static float toFloat(Bits bits) {
    const std::uint32_t sign = (static_cast<std::uint32_t>(bits) & 0x8000U) << 16U;
    const std::uint32_t magnitude = bits & 0x7fffU;
    // Subnormals count units of 2^-24, which a float32 holds as a normal number.
    const float small = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F;
    const std::uint32_t normal = (magnitude << 13U) + (112U << 23U);
    const std::uint32_t special = (magnitude << 13U) | Float32::kInfinity;
    const std::uint32_t large = choose(magnitude < kInfinity, normal, special);
    const std::uint32_t chosen =
        choose(magnitude < 0x400U, std::bit_cast<std::uint32_t>(small), large);
    return std::bit_cast<float>(sign | chosen);
  }

  static Bits fromFloat(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    // Below 2^-14 the result is subnormal: adding 0.5 leaves its 2^-24 units, rounded, in the low
    // mantissa bits.
    const std::uint32_t small =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
    const std::uint32_t normal =
        (magnitude - (112U << 23U) + 0xfffU + ((magnitude >> 13U) & 1U)) >> 13U;
    const std::uint32_t nan = 0x7e00U | ((magnitude >> 13U) & 0x3ffU);
    const std::uint32_t finite = choose(magnitude < (113U << 23U), small, normal);
    const std::uint32_t number = choose(magnitude >= 0x47800000U, kInfinity, finite);
    const std::uint32_t chosen = choose(magnitude > Float32::kInfinity, nan, number);
    return static_cast<Bits>(((bits >> 16U) & 0x8000U) | chosen);
  }
};

/// A float that rounds to the same 16-bit value as the double: inexact results get an odd last bit,
/// so that the second rounding cannot land on a tie that the first one made.
float roundToOdd(double value) {
  const auto near = static_cast<float>(value);
  const auto back = static_cast<double>(near);
  auto bits = std::bit_cast<std::uint32_t>(near);
  const bool inexact = back != value && value == value;
  const bool away = (back > value) == (value > 0);
  bits -= static_cast<std::uint32_t>(inexact) & static_cast<std::uint32_t>(away);
  bits |= static_cast<std::uint32_t>(inexact);
  return std::bit_cast<float>(bits);
}

template <typename From, typename To>
typename To::Bits convert(typename From::Bits bits) {
  if constexpr (std::is_same_v<From, Float64>) {
    const auto value = std::bit_cast<double>(bits);
    if constexpr (std::is_same_v<To, Float32>) {
      return To::fromFloat(static_cast<float>(value));
    } else {
      return To::fromFloat(roundToOdd(value));
    }
  } else {
    return To::fromFloat(From::toFloat(bits));
  }
}

/// Everything but the sign bit.
template <typename Format>
constexpr typename Format::Bits kMagnitude =
    static_cast<typename Format::Bits>(~typename Format::Bits{0}) >> 1U;

/// Elements between two looks at the results: they are still in the first-level cache then.
constexpr std::size_t kBlock = 4096;

template <typename From, typename To>
void convertBlock(const std::byte* __restrict source,
                  std::byte* __restrict target,
                  std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto in = load<typename From::Bits>(source + i * sizeof(typename From::Bits));
    store(target + i * sizeof(typename To::Bits), convert<From, To>(in));
  }
}

template <typename Format>
bool anyInfinite(const std::byte* values, std::size_t count) {
  using Bits = typename Format::Bits;
  Bits found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto magnitude =
        static_cast<Bits>(load<Bits>(values + i * sizeof(Bits)) & kMagnitude<Format>);
    found = static_cast<Bits>(found | static_cast<Bits>(magnitude == Format::kInfinity ? 1 : 0));
  }
  return found != 0;
}

/// Whether an infinity in `target` came from a finite value.
template <typename From, typename To>
bool anyOverflow(const std::byte* source, const std::byte* target, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto in = load<typename From::Bits>(source + i * sizeof(typename From::Bits));
    const auto out = load<typename To::Bits>(target + i * sizeof(typename To::Bits));
    if ((out & kMagnitude<To>) == To::kInfinity && (in & kMagnitude<From>) < From::kInfinity) {
      return true;
    }
  }
  return false;
}

template <typename From, typename To>
bool castLoop(const std::byte* source, std::byte* target, std::size_t count) {
  bool overflowed = false;
  for (std::size_t done = 0; done < count; done += kBlock) {
    const std::size_t block = std::min(kBlock, count - done);
    const std::byte* in = source + done * sizeof(typename From::Bits);
    std::byte* out = target + done * sizeof(typename To::Bits);
    convertBlock<From, To>(in, out, block);
    // Infinities are rare, so the exact question is asked only where there is one.
    if (anyInfinite<To>(out, block)) {
      overflowed = anyOverflow<From, To>(in, out, block) || overflowed;
    }
  }
  return !overflowed;
}

using Loop = bool (*)(const std::byte*, std::byte*, std::size_t);

template <typename From>
Loop loopTo(DType to) {
  switch (to) {
    case DType::kFloat16:
      return castLoop<From, Float16>;
    case DType::kBfloat16:
      return castLoop<From, Bfloat16>;
    case DType::kFloat32:
      return castLoop<From, Float32>;
    case DType::kFloat64:
      return castLoop<From, Float64>;
    default:
      return nullptr;
  }
}

Loop loopFor(DType from, DType to) {
  switch (from) {
    case DType::kFloat16:
      return loopTo<Float16>(to);
    case DType::kBfloat16:
      return loopTo<Bfloat16>(to);
    case DType::kFloat32:
      return loopTo<Float32>(to);
    case DType::kFloat64:
      return to == DType::kFloat64 ? nullptr : loopTo<Float64>(to);
    default:
      return nullptr;
  }
}

}  // namespace

bool isCastable(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

bool castElements(
    DType from, const std::byte* source, DType to, std::byte* target, std::size_t count) {
  const Loop loop = loopFor(from, to);
  PUSHROD_CHECK(loop != nullptr);
  return loop(source, target, count);
}

}  // namespace pushrod::transports
