// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/sources/safetensors.h"

namespace pushrod::tools {
namespace {

using ::testing::HasSubstr;

std::string entry(const std::string& name,
                  const std::string& dtype,
                  const std::string& shape,
                  const std::string& range) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
         range + "}";
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& range) {
  return "{" + entry("t", dtype, shape, range) + "}";
}

struct Malformed {
  const char* label;
  std::string header;
  std::uint64_t dataBytes;
  const char* fragment;
};

std::vector<Malformed> malformedDocuments() {
  const std::string ok = entry("a", "U8", "[4]", "[0,4]");
  return {
      {"empty", "", 0, "begin with '{'"},
      {"leading space", " {}", 0, "begin with '{'"},
      {"array", "[]", 0, "begin with '{'"},
      {"text", "\"x\"", 0, "begin with '{'"},
      {"cut", "{\"t\":", 0, "incomplete"},
      {"only brace", "{", 0, "incomplete"},
      {"trailing comma", "{" + ok + ",}", 4, "byte"},
      {"two documents", "{}{}", 0, "follows the document"},
      {"trailing garbage", "{" + ok + "}x", 4, "follows the document"},
      {"trailing zero", std::string("{}\0", 3), 0, "follows the document"},
      {"comment", "{/* x */}", 0, "byte"},
      {"bad utf-8", "{\"\xff\":{}}", 0, "byte 2 of the JSON"},
      {"depth", R"({"t":[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]})", 0, "too deep"},
      {"duplicate tensor", "{" + ok + "," + ok + "}", 4, "\"a\" appears twice"},
      {"duplicate metadata", R"({"__metadata__":{},"__metadata__":{}})", 0, "appears twice"},
      {"duplicate metadata key", R"({"__metadata__":{"k":"1","k":"2"}})", 0, "\"k\" appears twice"},
      {"duplicate dtype",
       R"({"t":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})",
       1,
       "\"dtype\" appears twice"},
      {"metadata list", R"({"__metadata__":[]})", 0, "__metadata__"},
      {"metadata number", R"({"__metadata__":{"format":1}})", 0, "__metadata__"},
      {"empty name", "{" + entry("", "U8", "[1]", "[0,1]") + "}", 1, "empty name"},
      {"long name", "{" + entry(std::string(2000, 'n'), "U8", "[1]", "[0,1]") + "}", 1, "2000"},
  };
}

std::vector<Malformed> malformedEntries() {
  return {
      {"entry number", R"({"t":1})", 0, "\"t\": its entry is not an object"},
      {"entry null", R"({"t":null})", 0, "not an object"},
      {"entry list", R"({"t":[]})", 0, "not an object"},
      {"no dtype", R"({"t":{"shape":[1],"data_offsets":[0,1]}})", 1, "lacks dtype"},
      {"no shape", R"({"t":{"dtype":"U8","data_offsets":[0,1]}})", 1, "lacks shape"},
      {"no range", R"({"t":{"dtype":"U8","shape":[1]}})", 1, "lacks data_offsets"},
      {"unknown key",
       R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"stride":[1]}})",
       1,
       "unknown key \"stride\""},
      {"dtype number", R"({"t":{"dtype":8,"shape":[1],"data_offsets":[0,1]}})", 1, "not a text"},
      {"unknown dtype", one("F7", "[1]", "[0,1]"), 1, "\"F7\" cannot be sent"},
      {"lower-case dtype", one("bf16", "[1]", "[0,2]"), 2, "those that can are BOOL"},
      {"complex dtype", one("C64", "[1]", "[0,8]"), 8, "\"C64\" cannot be sent"},
      {"sub-byte dtype", one("F4", "[2]", "[0,1]"), 1, "F8_E8M0"},
      {"six-bit dtype", one("F6_E2M3", "[4]", "[0,3]"), 3, "\"F6_E2M3\" cannot be sent"},
      {"fnuz dtype", one("F8_E4M3FNUZ", "[1]", "[0,1]"), 1, "cannot be sent"},
  };
}

std::vector<Malformed> malformedShapes() {
  return {
      {"shape number", one("U8", "1", "[0,1]"), 1, "shape is not a list"},
      {"negative extent", one("U8", "[-1]", "[0,1]"), 1, "no number of elements"},
      {"both negative", one("U8", "[-2,-2]", "[0,4]"), 4, "no number of elements"},
      {"fraction extent", one("U8", "[1.5]", "[0,1]"), 1, "no number of elements"},
      {"exponent extent", one("U8", "[1e0]", "[0,1]"), 1, "no number of elements"},
      {"text extent", one("U8", "[\"1\"]", "[0,1]"), 1, "no number of elements"},
      {"extent of 64 bits", one("U8", "[18446744073709551615]", "[0,1]"), 1, "no number of"},
      {"extent beyond 64 bits", one("U8", "[18446744073709551616]", "[0,1]"), 1, "no number of"},
      {"product overflow", one("U8", "[4294967296,4294967296]", "[0,0]"), 0, "larger than any"},
      {"wrap to small", one("U8", "[4294967296,4294967296,1]", "[0,1]"), 1, "larger than any"},
      {"byte overflow", one("F64", "[4611686018427387904]", "[0,0]"), 0, "larger than any memory"},
      {"extent of many digits",
       one("U8", "[" + std::string(199, '1') + "]", "[0,1]"),
       1,
       "no number of elements"},
  };
}

std::vector<Malformed> malformedRanges() {
  return {
      {"range number", one("U8", "[1]", "1"), 1, "two byte positions"},
      {"range of one", one("U8", "[1]", "[0]"), 1, "two byte positions"},
      {"range of three", one("U8", "[1]", "[0,1,2]"), 1, "two byte positions"},
      {"negative begin", one("U8", "[1]", "[-1,0]"), 1, "two byte positions"},
      {"fraction range", one("U8", "[1]", "[0,1.0]"), 1, "two byte positions"},
      {"reversed", one("U8", "[1]", "[1,0]"), 1, "end before they begin"},
      {"beyond the file", one("U8", "[5]", "[0,5]"), 4, "beyond the file"},
      {"far beyond the file",
       one("U8", "[1]", "[9223372036854775806,9223372036854775807]"),
       1,
       "beyond the file"},
      {"too few bytes", one("BF16", "[2,2]", "[0,4]"), 4, "bfloat16 [2, 2] needs 8"},
      {"too many bytes", one("BF16", "[1]", "[0,4]"), 4, "needs 2"},
      {"scalar of two", one("U8", "[]", "[0,2]"), 2, "needs 1"},
      {"bytes for nothing", one("U8", "[0]", "[0,1]"), 1, "needs 0"},
  };
}

std::vector<Malformed> malformedLayouts() {
  return {
      {"overlap",
       "{" + entry("a", "U8", "[4]", "[0,4]") + "," + entry("b", "U8", "[4]", "[2,6]") + "}",
       6,
       "\"a\" and \"b\" overlap"},
      {"same bytes twice",
       "{" + entry("a", "U8", "[4]", "[0,4]") + "," + entry("b", "U8", "[4]", "[0,4]") + "}",
       4,
       "overlap"},
      {"inside another",
       "{" + entry("a", "U8", "[8]", "[0,8]") + "," + entry("b", "U8", "[2]", "[3,5]") + "}",
       8,
       "overlap"},
      {"empty tensor inside another",
       "{" + entry("a", "U8", "[8]", "[0,8]") + "," + entry("b", "U8", "[0]", "[3,3]") + "}",
       8,
       "overlap"},
      {"gap at the start", one("U8", "[2]", "[2,4]"), 4, "bytes 0 to 2 before tensor \"t\""},
      {"gap between",
       "{" + entry("a", "U8", "[2]", "[0,2]") + "," + entry("b", "U8", "[2]", "[4,6]") + "}",
       6,
       "bytes 2 to 4 before tensor \"b\""},
      {"bytes left over", one("U8", "[2]", "[0,2]"), 9, "7 bytes at the file's end"},
      {"nothing but bytes", "{}", 3, "3 bytes at the file's end"},
  };
}

void expectRefused(const std::vector<Malformed>& rows) {
  for (const Malformed& row : rows) {
    const auto result = parseSafetensorsHeader(row.header, row.dataBytes);
    ASSERT_FALSE(result.ok()) << row.label;
    EXPECT_EQ(result.status().code(), Code::kInvalidArgument) << row.label;
    EXPECT_THAT(result.status().message(), HasSubstr(row.fragment)) << row.label;
  }
}

TEST(SafetensorsHeader, MalformedHeadersAreRefusedWithTheReason) {
  expectRefused(malformedDocuments());
  expectRefused(malformedEntries());
  expectRefused(malformedShapes());
  expectRefused(malformedRanges());
  expectRefused(malformedLayouts());
}

TEST(SafetensorsHeader, MoreThanSixtyFourDimensionsAreRefused) {
  std::string shape = "[1";
  for (int i = 0; i < 64; ++i) {
    shape += ",1";
  }
  const auto result = parseSafetensorsHeader(one("U8", shape + "]", "[0,1]"), 1);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().message(), HasSubstr("65 dimensions"));
}

TEST(SafetensorsHeader, EveryDTypeThatTravelsIsRead) {
  const std::vector<std::pair<const char*, DType>> rows = {
      {"BOOL", DType::kBool},
      {"U8", DType::kUint8},
      {"I8", DType::kInt8},
      {"U16", DType::kUint16},
      {"I16", DType::kInt16},
      {"U32", DType::kUint32},
      {"I32", DType::kInt32},
      {"U64", DType::kUint64},
      {"I64", DType::kInt64},
      {"F16", DType::kFloat16},
      {"BF16", DType::kBfloat16},
      {"F32", DType::kFloat32},
      {"F64", DType::kFloat64},
      {"F8_E4M3", DType::kFloat8E4m3fn},
      {"F8_E5M2", DType::kFloat8E5m2},
      {"F8_E8M0", DType::kFloat8E8m0fnu},
  };
  ASSERT_EQ(rows.size(), kDTypeCount);
  for (const auto& [name, dtype] : rows) {
    const std::uint64_t bytes = 3 * itemSize(dtype);
    const auto result =
        parseSafetensorsHeader(one(name, "[3]", "[0," + std::to_string(bytes) + "]"), bytes);
    ASSERT_TRUE(result.ok()) << name << ": " << result.status().message();
    EXPECT_EQ(result->at(0).dtype, dtype);
    EXPECT_EQ(result->at(0).bytes, bytes);
  }
}

TEST(SafetensorsHeader, TensorsComeInTheOrderOfTheirBytes) {
  const std::string header =
      "{\"__metadata__\":{\"format\":\"pt\"}," + entry("late", "U8", "[2,1]", "[4,6]") + "," +
      entry("empty", "F32", "[0,7]", "[4,4]") + "," + entry("early", "F32", "[]", "[0,4]") + "}   ";
  const auto result = parseSafetensorsHeader(header, 6);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result->size(), 3U);
  EXPECT_EQ(result->at(0).name, "early");
  EXPECT_EQ(result->at(0).shape, Shape{});
  EXPECT_EQ(result->at(1).name, "empty");
  EXPECT_EQ(result->at(1).bytes, 0U);
  EXPECT_EQ(result->at(2).name, "late");
  EXPECT_EQ(result->at(2).shape, (Shape{2, 1}));
  EXPECT_EQ(result->at(2).offset, 4U);
}

TEST(SafetensorsHeader, NoTensorAndNoByteIsAValidHeader) {
  const auto result = parseSafetensorsHeader("{}", 0);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->empty());
}

}  // namespace
}  // namespace pushrod::tools
