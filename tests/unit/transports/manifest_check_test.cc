// SPDX-License-Identifier: Apache-2.0
#include "transports/manifest_check.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pushrod::transports {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const float kMemory[64] = {};

Manifest threeTensors() {
  return {{{"a", DType::kBfloat16, {2, 3}, 0},
           {"b", DType::kFloat32, {4}, 0},
           {"c", DType::kInt32, {1}, 0}}};
}

TensorView viewOf(const TensorSpec& spec) {
  TensorView view;
  view.name = spec.name;
  view.dtype = spec.dtype;
  view.shape = spec.shape;
  view.data = kMemory;
  return view;
}

TEST(ManifestChecker, acceptsWhatWasDeclared) {
  const Manifest manifest = threeTensors();
  ManifestChecker checker(manifest, DtypeMismatch::kRefuse);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(checker.check(i, viewOf(manifest.tensors[i])).ok());
  }
  EXPECT_TRUE(checker.end(3).ok());
  EXPECT_EQ(checker.casts(), 0U);
  EXPECT_EQ(checker.castNote(), "");
}

TEST(ManifestChecker, namesTheTensorAndBothDescriptions) {
  const Manifest manifest = threeTensors();

  struct Row {
    const char* name;
    std::size_t index;
    TensorSpec streamed;
    std::vector<const char*> texts;
  };

  const Row rows[] = {
      {"shape", 0, {"a", DType::kBfloat16, {3, 2}, 0}, {"shape", "a bfloat16 [2, 3]", "[3, 2]"}},
      {"rank", 1, {"b", DType::kFloat32, {4, 1}, 0}, {"shape", "b float32 [4]", "[4, 1]"}},
      {"integer dtype", 2, {"c", DType::kInt64, {1}, 0}, {"dtype", "c int32 [1]", "c int64 [1]"}},
      {"int for float", 1, {"b", DType::kInt32, {4}, 0}, {"dtype", "b float32 [4]", "b int32"}},
      {"fp8 source", 1, {"b", DType::kFloat8E4m3fn, {4}, 0}, {"dtype", "float8_e4m3fn"}},
      {"skipped", 0, {"b", DType::kFloat32, {4}, 0}, {"order", "missing", "'a bfloat16", "'b "}},
      {"repeated", 1, {"a", DType::kBfloat16, {2, 3}, 0}, {"order", "extra", "tensor 0"}},
      {"unknown", 1, {"x", DType::kFloat32, {4}, 0}, {"extra", "'b float32", "'x float32"}},
      {"past the end", 3, {"d", DType::kFloat32, {4}, 0}, {"extra", "only 3 tensors", "'d "}},
  };
  for (const Row& row : rows) {
    ManifestChecker checker(manifest, DtypeMismatch::kCast);
    const Status status = checker.check(row.index, viewOf(row.streamed));
    EXPECT_EQ(status.code(), Code::kDataMismatch) << row.name;
    EXPECT_THAT(status.message(), HasSubstr("tensor " + std::to_string(row.index))) << row.name;
    for (const char* text : row.texts) {
      EXPECT_THAT(status.message(), HasSubstr(text)) << row.name;
    }
  }
}

TEST(ManifestChecker, countsAtTheEnd) {
  const Manifest manifest = threeTensors();
  const ManifestChecker checker(manifest, DtypeMismatch::kCast);
  EXPECT_THAT(checker.end(1).message(), AllOf(HasSubstr("missing"), HasSubstr("b float32 [4]")));
  EXPECT_THAT(checker.end(4).message(), HasSubstr("extra"));
}

TEST(ManifestChecker, castsFloatsByPolicy) {
  const DType floats[] = {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64};
  for (const DType declared : floats) {
    for (const DType streamed : floats) {
      const Manifest manifest = {{{"w", declared, {8}, 0}}};
      TensorView view = viewOf(manifest.tensors[0]);
      view.dtype = streamed;
      ManifestChecker cast(manifest, DtypeMismatch::kCast);
      EXPECT_TRUE(cast.check(0, view).ok());
      EXPECT_EQ(cast.casts(), declared == streamed ? 0U : 1U);
      ManifestChecker refuse(manifest, DtypeMismatch::kRefuse);
      EXPECT_EQ(refuse.check(0, view).ok(), declared == streamed);
    }
  }
  const Manifest fp8 = {{{"w", DType::kFloat8E4m3fn, {8}, 0}}};
  TensorView view = viewOf(fp8.tensors[0]);
  view.dtype = DType::kBfloat16;
  ManifestChecker checker(fp8, DtypeMismatch::kCast);
  EXPECT_FALSE(checker.check(0, view).ok());
}

TEST(ManifestChecker, theCastNoteHoldsDeclaredAndStreamedBytesOfTheFirst) {
  const Manifest manifest = threeTensors();
  ManifestChecker checker(manifest, DtypeMismatch::kCast);
  TensorView first = viewOf(manifest.tensors[0]);
  first.dtype = DType::kFloat32;
  TensorView second = viewOf(manifest.tensors[1]);
  second.dtype = DType::kFloat16;
  EXPECT_TRUE(checker.check(0, first).ok());
  EXPECT_TRUE(checker.check(1, second).ok());
  EXPECT_EQ(checker.casts(), 2U);
  EXPECT_EQ(checker.castNote(),
            "tensor 0 is cast: declared 'a bfloat16 [2, 3]' (12 bytes), streamed "
            "'a float32 [2, 3]' (24 bytes)");
}

TEST(ManifestChecker, refusesMemoryThatCannotBe) {
  const Manifest manifest = threeTensors();
  ManifestChecker checker(manifest, DtypeMismatch::kCast);
  TensorView view = viewOf(manifest.tensors[0]);
  view.data = nullptr;
  EXPECT_THAT(checker.check(0, view).message(), HasSubstr("null data"));
  view = viewOf(manifest.tensors[0]);
  view.strides = {1};
  EXPECT_THAT(checker.check(0, view).message(), HasSubstr("1 strides for 2 dimensions"));
  for (const std::int64_t wide : {std::numeric_limits<std::int64_t>::max(),
                                  std::numeric_limits<std::int64_t>::max() / 2 + 1,
                                  std::numeric_limits<std::int64_t>::min()}) {
    view.strides = {wide, 1};
    EXPECT_THAT(checker.check(0, view).message(), HasSubstr("beyond any address")) << wide;
  }
  view.strides = {0, 0};
  EXPECT_TRUE(checker.check(0, view).ok());
  const Manifest empty = {{{"e", DType::kFloat32, {0, 4}, 0}}};
  ManifestChecker zero(empty, DtypeMismatch::kCast);
  TensorView nothing = viewOf(empty.tensors[0]);
  nothing.data = nullptr;
  EXPECT_TRUE(zero.check(0, nothing).ok());
}

}  // namespace
}  // namespace pushrod::transports
