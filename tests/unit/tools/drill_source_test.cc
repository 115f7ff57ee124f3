// SPDX-License-Identifier: Apache-2.0
#include "tools/sources/drill_source.h"

#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tools/sources/drill_values.h"

namespace pushrod::tools {
namespace {

// hashlib.shake_128(b"model.w\x001\x007").digest(40), written down by hand from Python.
constexpr unsigned char kShake[] = {0xb4, 0x20, 0x29, 0xc1, 0xff, 0xef, 0xce, 0xee, 0x68, 0x98,
                                    0xe3, 0x3d, 0x53, 0x81, 0xfb, 0x58, 0x69, 0xa1, 0xd4, 0xcb,
                                    0x6e, 0xab, 0xac, 0x7d, 0x80, 0x4d, 0xf6, 0xea, 0xd8, 0x31,
                                    0x25, 0x4d, 0x38, 0xe2, 0x84, 0x14, 0xc7, 0xa8, 0xd8, 0x5f};
constexpr unsigned char kShakeOfTwo[] = {0x77, 0xe6};

/// Faults that only say that they happened.
class Noted final : public FaultActor {
 public:
  Status act(const DrillFault& fault) override {
    done.push_back(fault.describe());
    if (fault.kind == FaultKind::kThrow) {
      throw std::runtime_error("planned");
    }
    return {};
  }

  void endHang() noexcept override {}

  std::vector<std::string> done;
};

DrillTensor tensorOf(DType dtype, Shape shape, DrillLayout layout = DrillLayout::kContiguous) {
  DrillTensor tensor;
  tensor.spec = {"model.w", dtype, std::move(shape), 0};
  tensor.stream = dtype;
  tensor.layout = layout;
  tensor.seed = 1;
  return tensor;
}

/// The elements of a view in row-major order, as a consumer that honours strides reads them.
std::string read(const TensorView& view) {
  const std::size_t item = itemSize(view.dtype);
  std::string bytes;
  std::vector<std::int64_t> at(view.shape.size(), 0);
  const std::int64_t count = elementCount(view.shape).value_or(0);
  for (std::int64_t n = 0; n < count; ++n) {
    std::int64_t offset = view.strides.empty() ? n : 0;
    for (std::size_t d = 0; d < view.strides.size(); ++d) {
      offset += at[d] * view.strides[d];
    }
    bytes.append(static_cast<const char*>(view.data) + std::size_t(offset) * item, item);
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < view.shape[d]) {
        break;
      }
      at[d] = 0;
    }
  }
  return bytes;
}

std::string contents(const DrillTensor& tensor) {
  DrillPlan plan;
  plan.tensors = {tensor};
  const DrillPush push{.version = "7", .faults = {}};
  SoloGather solo;
  Noted noted;
  DrillSource source(plan, push, solo, noted);
  EXPECT_TRUE(source.begin().ok());
  const auto item = source.next();
  EXPECT_TRUE(item.ok() && item->has_value());
  return item && *item ? read(**item) : "";
}

TEST(DrillValues, AreTheLowBitsOfShake128) {
  const std::string got = contents(tensorOf(DType::kInt8, {40}));
  ASSERT_EQ(got.size(), sizeof(kShake));
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(static_cast<signed char>(got[i]), (kShake[i] & 15) - 8) << i;
  }
  const std::string bits = contents(tensorOf(DType::kBool, {40}));
  const std::string small = contents(tensorOf(DType::kUint8, {40}));
  for (std::size_t i = 0; i < sizeof(kShake); ++i) {
    EXPECT_EQ(bits[i], kShake[i] & 1);
    EXPECT_EQ(small[i], kShake[i] & 15);
  }
}

TEST(DrillValues, OtherNamesSeedsAndVersionsGiveOthers) {
  DrillTensor tensor = tensorOf(DType::kUint8, {2});
  tensor.spec.name = "a";
  tensor.seed = 0;
  std::byte out[2];
  ASSERT_TRUE(makeStored(tensor, "1", 0, out).ok());
  EXPECT_EQ(std::to_integer<int>(out[0]), kShakeOfTwo[0] & 15);
  EXPECT_EQ(std::to_integer<int>(out[1]), kShakeOfTwo[1] & 15);
}

TEST(DrillValues, AreExactInEveryFormat) {
  for (unsigned b = 0; b < 16; ++b) {
    const int value = static_cast<int>(b) - 8;
    float single = 0;
    const auto bits = static_cast<std::uint32_t>(drillBits(DType::kFloat32, b));
    std::memcpy(&single, &bits, sizeof(single));
    EXPECT_EQ(single, static_cast<float>(value));
    double wide = 0;
    const std::uint64_t wideBits = drillBits(DType::kFloat64, b);
    std::memcpy(&wide, &wideBits, sizeof(wide));
    EXPECT_EQ(wide, value);
    // A bfloat16 is the upper half of a float.
    EXPECT_EQ(drillBits(DType::kBfloat16, b), bits >> 16U);
    EXPECT_EQ(static_cast<std::int64_t>(drillBits(DType::kInt64, b)), value);
    EXPECT_EQ(drillBits(DType::kFloat8E8m0fnu, b), 119U + b);
  }
  // 7 and -5 by hand: 1.75 x 4, -1.25 x 4.
  EXPECT_EQ(drillBits(DType::kFloat16, 15), 0x4700U);
  EXPECT_EQ(drillBits(DType::kFloat16, 3), 0xc500U);
  EXPECT_EQ(drillBits(DType::kFloat8E4m3fn, 15), 0x4eU);
  EXPECT_EQ(drillBits(DType::kFloat8E4m3fn, 3), 0xcaU);
  EXPECT_EQ(drillBits(DType::kFloat8E5m2, 15), 0x47U);
  EXPECT_EQ(drillBits(DType::kFloat8E5m2, 0), 0xc8U);
}

TEST(DrillValues, SharesOfAnyCutMakeTheWhole) {
  const DrillTensor tensor = tensorOf(DType::kFloat32, {10});
  const std::string whole = contents(tensor);
  for (int size = 1; size <= 7; ++size) {
    std::string joined;
    for (int rank = 0; rank < size; ++rank) {
      const Share share = shareOf(whole.size(), rank, size);
      std::string part(share.bytes, '\0');
      ASSERT_TRUE(
          makeStored(tensor, "7", share.offset, std::as_writable_bytes(std::span(part))).ok());
      joined += part;
    }
    EXPECT_EQ(joined, whole) << size;
  }
}

TEST(DrillLayout, ReadsLikeAContiguousCopy) {
  for (const Shape& shape : {Shape{5, 7}, Shape{2, 3, 4}, Shape{1, 6}, Shape{0, 4}}) {
    const std::string plain = contents(tensorOf(DType::kBfloat16, shape));
    for (const DrillLayout layout : {DrillLayout::kTransposed, DrillLayout::kStrided}) {
      EXPECT_EQ(contents(tensorOf(DType::kBfloat16, shape, layout)), plain);
    }
  }
  EXPECT_EQ(layoutStrides(tensorOf(DType::kInt8, {5, 7}, DrillLayout::kTransposed)),
            (std::vector<std::int64_t>{1, 5}));
  EXPECT_EQ(layoutStrides(tensorOf(DType::kInt8, {5, 7}, DrillLayout::kStrided)),
            (std::vector<std::int64_t>{14, 1}));
}

TEST(DrillLayout, AnExpandedTensorRepeatsItsFirstRow) {
  const DrillTensor tensor = tensorOf(DType::kInt8, {3, 5}, DrillLayout::kExpanded);
  const std::string row = contents(tensorOf(DType::kInt8, {5}));
  EXPECT_EQ(contents(tensor), row + row + row);
  EXPECT_EQ(layoutStrides(tensor), (std::vector<std::int64_t>{0, 1}));
}

class DrillStream : public ::testing::Test {
 protected:
  DrillStream() {
    for (const char* name : {"a", "b", "c", "d"}) {
      DrillTensor tensor = tensorOf(DType::kInt8, {4});
      tensor.spec.name = name;
      plan_.tensors.push_back(tensor);
    }
    plan_.tensors[3].aliasOf = 0;
    push_.version = "7";
  }

  void plan(FaultKind kind, std::optional<std::size_t> tensor, int rank = 0, int times = 1) {
    DrillFault fault;
    fault.rank = rank;
    fault.kind = kind;
    fault.tensor = tensor;
    fault.afterLast = !tensor.has_value();
    fault.times = times;
    push_.faults.push_back(fault);
  }

  /// Names and shapes of one pass, "!" where it threw.
  static std::string pass(DrillSource& source) {
    std::string text;
    EXPECT_TRUE(source.begin().ok());
    try {
      for (;;) {
        const auto item = source.next();
        EXPECT_TRUE(item.ok());
        if (!item || !*item) {
          return text;
        }
        text += std::string((*item)->name) + shapeText((*item)->shape);
      }
    } catch (const std::runtime_error&) {
      return text + "!";
    }
  }

  DrillPlan plan_;
  DrillPush push_;
  SoloGather gather_;
  Noted noted_;
};

TEST_F(DrillStream, ListsEveryTensorAndAliasesShareMemory) {
  DrillSource source(plan_, push_, gather_, noted_);
  EXPECT_EQ(pass(source), "a[4]b[4]c[4]d[4]");
  ASSERT_TRUE(source.begin().ok());
  const auto first = source.next();
  const void* memory = (*first)->data;
  const std::string bytes = read(**first);
  ASSERT_TRUE(source.next().ok() && source.next().ok());
  const auto last = source.next();
  EXPECT_EQ((*last)->data, memory);
  EXPECT_EQ(read(**last), bytes);
}

TEST_F(DrillStream, FaultsChangeTheFirstPassOnly) {
  plan(FaultKind::kMissing, 1);
  plan(FaultKind::kWrongShape, 2);
  DrillSource source(plan_, push_, gather_, noted_);
  EXPECT_EQ(pass(source), "a[4]c[4, 1]d[4]");
  EXPECT_EQ(pass(source), "a[4]b[4]c[4]d[4]");
}

TEST_F(DrillStream, ExtrasAndReorderedOnes) {
  plan(FaultKind::kExtra, 0);
  plan(FaultKind::kExtra, std::nullopt);
  plan(FaultKind::kReorder, 1);
  DrillSource source(plan_, push_, gather_, noted_);
  EXPECT_EQ(pass(source), "drill.extra[1]a[4]c[4]b[4]d[4]drill.extra[1]");
}

TEST_F(DrillStream, ActsBeforeItsTensorSoManyTimesAndOnItsRankOnly) {
  plan(FaultKind::kThrow, 2, 0, 2);
  plan(FaultKind::kThrow, 0, 1);
  DrillSource source(plan_, push_, gather_, noted_);
  EXPECT_EQ(pass(source), "a[4]b[4]!");
  EXPECT_EQ(pass(source), "a[4]b[4]!");
  EXPECT_EQ(pass(source), "a[4]b[4]c[4]d[4]");
}

TEST_F(DrillStream, ActsAfterTheLastAndInPhases) {
  plan(FaultKind::kStop, std::nullopt);
  DrillFault inPhase;
  inPhase.kind = FaultKind::kHang;
  inPhase.phase = Phase::kVerify;
  push_.faults.push_back(inPhase);
  DrillSource source(plan_, push_, gather_, noted_);
  EXPECT_EQ(pass(source), "a[4]b[4]c[4]d[4]");
  EXPECT_TRUE(source.enter(Phase::kFinish).ok());
  EXPECT_TRUE(source.enter(Phase::kVerify).ok());
  EXPECT_TRUE(source.enter(Phase::kVerify).ok());
  EXPECT_EQ(noted_.done, (std::vector<std::string>{"stop after the last", "hang in phase verify"}));
}

}  // namespace
}  // namespace pushrod::tools
