// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transports/manifest_check.h"
#include "transports/update_info.h"
#include "transports/utf8.h"

namespace pushrod::transports {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

TEST(ValidateManifest, table) {
  struct Row {
    Manifest manifest;
    const char* text;  ///< part of the refusal; empty: accepted
  };

  const Row rows[] = {
      {{{{"a", DType::kBfloat16, {2, 3}, 0}, {"b", DType::kBool, {}, 3}}}, ""},
      {{{{"a", DType::kBfloat16, {0, kHuge, kHuge}, 0}}}, ""},
      {{}, "empty"},
      {{{{"a", DType::kInt8, {1}, 0}, {"a", DType::kInt8, {1}, 0}}}, "only once"},
      {{{{"", DType::kInt8, {1}, 0}}}, "no name"},
      {{{{"\xff", DType::kInt8, {1}, 0}}}, "UTF-8"},
      {{{{"a", DType::kInt8, {-1}, 0}}}, "negative"},
      {{{{"a", DType::kInt8, {kHuge, 4}, 0}}}, "too many"},
      {{{{"a", DType::kInt64, {kHuge}, 0}}}, "2^63"},
      {{{{"a", DType::kInt8, {kHuge}, 0}, {"b", DType::kInt8, {kHuge}, 0}}}, "2^63"},
      {{{{"a", DType::kInt8, {1}, -1}}}, "owner"},
  };
  for (const Row& row : rows) {
    const Status status = validateManifest(row.manifest);
    EXPECT_EQ(status.ok(), *row.text == '\0') << status.message();
    EXPECT_THAT(status.message(), HasSubstr(row.text));
    EXPECT_TRUE(status.ok() || status.code() == Code::kInvalidArgument);
  }
}

TEST(ManifestText, comesBackWhateverTheNames) {
  const Manifest manifest = {{{"model.layers.0.w", DType::kBfloat16, {2, 3}, 0},
                              {"scalar", DType::kFloat32, {}, 2},
                              {"line\nbreak 7:x \"quoted\"", DType::kInt64, {0, 5}, 1},
                              {"Gr\xc3\xb6\xc3\x9f"
                               "e",
                               DType::kFloat8E8m0fnu,
                               {1},
                               0}}};
  const std::string text = manifestText(manifest);
  const Result<Manifest> back = parseManifestText(text);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, manifest);
  EXPECT_EQ(manifestText(*back), text);
}

TEST(ManifestText, theCanonicalForm) {
  EXPECT_EQ(manifestText({{{"a b", DType::kBfloat16, {2, 3}, 0}}}),
            "pushrod manifest 1\n3:a b bfloat16 [2, 3] 0\n");
}

TEST(ManifestText, everyTruncationAndOddTextIsRefused) {
  const std::string text = manifestText({{{"a", DType::kBfloat16, {2, 3}, 0}}});
  const std::size_t header = std::string("pushrod manifest 1\n").size();
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    if (cut != header) {
      EXPECT_FALSE(parseManifestText(text.substr(0, cut)).ok()) << cut;
    }
  }
  for (const char* odd : {"pushrod manifest 2\n",
                          "pushrod manifest 1\n01:a int8 [1] 0\n",
                          "pushrod manifest 1\n99999999999999999999:a int8 [1] 0\n",
                          "pushrod manifest 1\n18446744073709551615:a int8 [1] 0\n",
                          "pushrod manifest 1\n1:a int9 [1] 0\n",
                          "pushrod manifest 1\n1:a int8 [1,2] 0\n",
                          "pushrod manifest 1\n1:a int8 [1, ] 0\n",
                          "pushrod manifest 1\n1:a int8 [1] 0\nx"}) {
    EXPECT_EQ(parseManifestText(odd).status().code(), Code::kDataMismatch) << odd;
  }
}

TEST(FirstManifestDifference, saysWhereAndWhat) {
  const Manifest base = {{{"a", DType::kInt8, {1}, 0}, {"b", DType::kInt8, {2}, 0}}};
  Manifest other = base;
  EXPECT_EQ(firstManifestDifference(base, base), "");
  other.tensors[1].shape = {3};
  EXPECT_EQ(firstManifestDifference(other, base),
            "tensor 1 is 'b int8 [3]' owned by rank 0 here and 'b int8 [2]' owned by rank 0 on "
            "rank 0");
  other.tensors.pop_back();
  EXPECT_THAT(firstManifestDifference(other, base),
              AllOf(HasSubstr("'b int8 [2]'"), HasSubstr("missing here")));
  EXPECT_THAT(firstManifestDifference(base, other), HasSubstr("extra here"));
}

TEST(DeclareDtypes, defaultForFloatsAndPatternsOverIt) {
  const Manifest manifest = {{{"layers.0.w", DType::kFloat32, {1}, 0},
                              {"layers.10.w", DType::kFloat64, {1}, 0},
                              {"layers.0.norm", DType::kFloat32, {1}, 0},
                              {"count", DType::kInt64, {1}, 0},
                              {"q", DType::kFloat8E4m3fn, {1}, 0},
                              {"exact", DType::kFloat32, {1}, 0}}};
  DtypesConfig config;
  EXPECT_EQ(declareDtypes(manifest, config), manifest);
  config.defaultDtype = "bfloat16";
  config.overrides = {
      {"*.norm", "float32"}, {"layers.?.w", "float16"}, {"exac?", "float64"}, {"exact", "float16"}};
  const Manifest got = declareDtypes(manifest, config);
  std::vector<DType> dtypes;
  for (const TensorSpec& tensor : got.tensors) {
    dtypes.push_back(tensor.dtype);
  }
  EXPECT_EQ(dtypes,
            (std::vector<DType>{DType::kFloat16,
                                DType::kBfloat16,
                                DType::kFloat32,
                                DType::kInt64,
                                DType::kFloat8E4m3fn,
                                DType::kFloat16}));
}

TEST(DeclareDtypes, theLongestFittingPatternWins) {
  const Manifest manifest = {{{"a.b.c", DType::kFloat32, {1}, 0}}};
  DtypesConfig config;
  config.overrides = {{"*", "float16"}, {"a*c", "bfloat16"}, {"a.*.*", "float64"}, {"b*", "int8"}};
  EXPECT_EQ(declareDtypes(manifest, config).tensors[0].dtype, DType::kFloat64);
}

TEST(TensorLists, isJsonWithEscapedNames) {
  EXPECT_EQ(tensorLists(
                {{{"a\"\\\n\x01", DType::kBfloat16, {2, 3}, 0}, {"s", DType::kFloat8E5m2, {}, 0}}}),
            "\"names\": [\"a\\\"\\\\\\n\\u0001\", \"s\"], "
            "\"dtype_names\": [\"bfloat16\", \"float8_e5m2\"], \"shapes\": [[2, 3], []]");
}

TEST(Utf8, wellFormedOrNot) {
  for (const char* good :
       {"", "abc", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(isUtf8(good)) << good;
  }
  for (const char* bad : {"\x80",
                          "\xc1\x80",
                          "\xe0\x9f\xbf",
                          "\xed\xa0\x80",
                          "\xf0\x8f\xbf\xbf",
                          "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80",
                          "\xc3",
                          "a\xe2\x82"}) {
    EXPECT_FALSE(isUtf8(bad)) << bad;
  }
  EXPECT_EQ(utf8Prefix("a\xc3\xb6z", 2), "a");
  EXPECT_EQ(utf8Prefix("a\xc3\xb6z", 3), "a\xc3\xb6");
  EXPECT_EQ(utf8Prefix("a\xc3\xb6z", 9), "a\xc3\xb6z");
}

}  // namespace
}  // namespace pushrod::transports
