// SPDX-License-Identifier: Apache-2.0
#include "tools/sources/drill_plan.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/scratch_folder.h"

namespace pushrod::tools {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kTensor = R"({"name": "a", "dtype": "bfloat16", "shape": [4, 2]})";
constexpr std::string_view kPush = R"({"version": "1"})";

std::string planOf(std::string_view tensors, std::string_view pushes, std::string_view more = "") {
  return R"({"tensors": [)" + std::string(tensors) + R"(], "pushes": [)" + std::string(pushes) +
         "]" + std::string(more) + "}";
}

std::string faultPlan(std::string_view fault) {
  return planOf(std::string(kTensor) + R"(, {"name": "b", "dtype": "int8", "shape": [3]})",
                R"({"version": "1", "faults": [)" + std::string(fault) + "]}");
}

TEST(DrillPlan, IsReadWhole) {
  const auto plan = parseDrillPlan(R"({
    "tensors": [{"name": "embed", "dtype": "bfloat16", "shape": [1024, 64],
                 "stream_dtype": "float32", "layout": "transposed", "alias_of": null, "seed": 1,
                 "owner": 0},
                {"name": "head", "dtype": "bfloat16", "shape": [1024, 64],
                 "stream_dtype": "float32", "alias_of": "embed"}],
    "repeat": {"prefix": "model.layers.{}.w", "count": 2, "dtype": "int8", "shape": []},
    "pushes": [{"version": "7", "draft": false, "wait_before_s": 0.5,
                "faults": [{"rank": 2, "at": {"tensor": 3}, "kind": "throw", "times": 2},
                           {"rank": 0, "at": {"phase": "verify"}, "kind": "hang", "seconds": 1.5},
                           {"rank": 1, "at": {"after": "last_tensor"}, "kind": "stop"}]},
               {"version": "8"}],
    "config_overrides": {"2": {"transport.buffer": "2MiB", "push.flush": false,
                               "transport.buffers": 3}}})",
                                   "plan.json",
                                   4);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_EQ(plan->tensors.size(), 4U);
  const DrillTensor& embed = plan->tensors[0];
  EXPECT_EQ(embed.spec, (TensorSpec{"embed", DType::kBfloat16, {1024, 64}, 0}));
  EXPECT_EQ(embed.stream, DType::kFloat32);
  EXPECT_EQ(embed.layout, DrillLayout::kTransposed);
  EXPECT_EQ(embed.seed, 1U);
  EXPECT_EQ(plan->tensors[1].aliasOf, 0U);
  EXPECT_EQ(plan->tensors[1].layout, DrillLayout::kTransposed);
  EXPECT_EQ(plan->tensors[3].spec, (TensorSpec{"model.layers.1.w", DType::kInt8, {}, 0}));
  EXPECT_EQ(plan->tensors[3].seed, 0U);
  EXPECT_EQ(plan->manifest().bytes(), 2 * 1024U * 64 * 2 + 2);
  ASSERT_EQ(plan->pushes.size(), 2U);
  EXPECT_EQ(plan->pushes[0].wait, Duration(500));
  const auto& faults = plan->pushes[0].faults;
  ASSERT_EQ(faults.size(), 3U);
  EXPECT_EQ(faults[0].tensor, 3U);
  EXPECT_EQ(faults[0].times, 2);
  EXPECT_EQ(faults[1].phase, Phase::kVerify);
  EXPECT_EQ(faults[1].length, Duration(1500));
  EXPECT_TRUE(faults[2].afterLast);
  EXPECT_TRUE(faults[2].endsRank());
  ASSERT_EQ(plan->overrides.at(2).size(), 3U);
  EXPECT_EQ(plan->overrides.at(2)[0].value, "2MiB");
  EXPECT_EQ(plan->overrides.at(2)[1].value, "false");
  EXPECT_EQ(plan->overrides.at(2)[2].value, "3");
}

struct Malformed {
  std::string text;
  const char* place;
  const char* says;
};

class DrillPlanMalformed : public ::testing::TestWithParam<Malformed> {};

TEST_P(DrillPlanMalformed, IsRefusedWithItsPlace) {
  const auto plan = parseDrillPlan(GetParam().text, "p.json", 4);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(plan.status().message(), HasSubstr(std::string("p.json: ") + GetParam().place));
  EXPECT_THAT(plan.status().message(), HasSubstr(GetParam().says));
}

std::string tensorPlan(std::string_view tensor) {
  return planOf(tensor, kPush);
}

INSTANTIATE_TEST_SUITE_P(
    Tensors,
    DrillPlanMalformed,
    ::testing::Values(
        Malformed{"", "byte 0", ""},
        Malformed{"[]", "must be an object", "a list"},
        Malformed{R"({"tensors": []})", "pushes: ", "missing"},
        Malformed{R"({"pushes": [{"version": "1"}]})", "tensors: ", "repeat"},
        Malformed{R"({"tensors": {}, "pushes": []})", "tensors: ", "a list"},
        Malformed{R"({"tensors": [], "tensors": [], "pushes": []})", "byte", "twice"},
        Malformed{planOf(kTensor, kPush, R"(, "tensor": 1)"), "tensor: ", "unknown key"},
        Malformed{tensorPlan("3"), "tensors[0]: ", "an object"},
        Malformed{tensorPlan(R"({"dtype": "int8", "shape": []})"), "tensors[0].name: ", "missing"},
        Malformed{tensorPlan(R"({"name": "", "dtype": "int8", "shape": []})"),
                  "tensors[0].name: ",
                  "empty"},
        Malformed{tensorPlan(R"({"name": 5, "dtype": "int8", "shape": []})"),
                  "tensors[0].name: ",
                  "a text"},
        Malformed{tensorPlan(R"({"name": "a", "dtype": "int4", "shape": []})"),
                  "tensors[0].dtype: ",
                  "float8_e8m0fnu"},
        Malformed{tensorPlan(R"({"name": "a", "dtype": "int8"})"), "tensors[0].shape: ", "missing"},
        Malformed{tensorPlan(R"({"name": "a", "dtype": "int8", "shape": [2, -1]})"),
                  "tensors[0].shape[1]: ",
                  "negative"},
        Malformed{tensorPlan(R"({"name": "a", "dtype": "int8", "shape": [2.5]})"),
                  "tensors[0].shape[0]: ",
                  "whole number"},
        Malformed{
            tensorPlan(R"({"name": "a", "dtype": "int8", "shape": [4294967296, 4294967296]})"),
            "tensors[0].shape: ",
            "too large"},
        Malformed{
            tensorPlan(R"({"name": "a", "dtype": "int8", "shape": [3], "layout": "transposed"})"),
            "tensors[0].layout: ",
            "2 dimensions"},
        Malformed{tensorPlan(R"({"name": "a", "dtype": "int8", "shape": [], "layout": "strided"})"),
                  "tensors[0].layout: ",
                  "1 dimension"},
        Malformed{tensorPlan(R"({"name": "a", "dtype": "int8", "shape": [3], "layout": "odd"})"),
                  "tensors[0].layout: ",
                  "expanded"},
        Malformed{tensorPlan(R"({"name": "a", "dtype": "int8", "shape": [], "seed": -1})"),
                  "tensors[0].seed: ",
                  "-1"},
        Malformed{tensorPlan(R"({"name": "a", "dtype": "int8", "shape": [], "owner": -1})"),
                  "tensors[0].owner: ",
                  "-1"},
        Malformed{tensorPlan(R"({"name": "a", "dtype": "int8", "shape": [], "alias_of": "b"})"),
                  "tensors[0].alias_of: ",
                  "no tensor before"},
        Malformed{tensorPlan(std::string(kTensor) +
                             R"(, {"name": "b", "dtype": "int8", "shape": [8], "alias_of": "a"})"),
                  "tensors[1].alias_of: ",
                  "another shape"},
        Malformed{R"({"repeat": {"prefix": "x", "count": 1, "dtype": "int8", "shape": []},
                      "pushes": [{"version": "1"}]})",
                  "repeat.prefix: ",
                  "{}"},
        Malformed{R"({"repeat": {"prefix": "{}", "count": "1", "dtype": "int8", "shape": []},
                      "pushes": [{"version": "1"}]})",
                  "repeat.count: ",
                  "whole number"}));

INSTANTIATE_TEST_SUITE_P(
    Pushes,
    DrillPlanMalformed,
    ::testing::Values(
        Malformed{planOf(kTensor, ""), "pushes: ", "empty"},
        Malformed{planOf(kTensor, "{}"), "pushes[0].version: ", "missing"},
        Malformed{planOf(kTensor, R"({"version": ""})"), "pushes[0].version: ", "not empty"},
        Malformed{planOf(kTensor, R"({"version": 7})"), "pushes[0].version: ", "a text"},
        Malformed{planOf(kTensor, R"({"version": "a\nb"})"), "pushes[0].version: ", "one line"},
        Malformed{planOf(kTensor, R"({"version": "1", "faults": [{"rank": 0, "kind": "throw",
                                      "at": {"tensor": 0}, "draft": true}]})"),
                  "pushes[0].faults[0].draft: ",
                  "carries no draft"},
        Malformed{planOf(kTensor, R"({"version": "1", "draft": true, "faults": [{"rank": 0,
                                      "kind": "throw", "at": {"phase": "start"},
                                      "draft": true}]})"),
                  "pushes[0].faults[0].draft: ",
                  "not with a phase"},
        Malformed{planOf(kTensor, R"({"version": "1", "draft": 0})"),
                  "pushes[0].draft: ",
                  "true or false"},
        Malformed{planOf(kTensor, R"({"version": "1", "wait_before_s": "1s"})"),
                  "pushes[0].wait_before_s: ",
                  "number of seconds"},
        Malformed{planOf(kTensor, R"({"version": "1", "wait_before_s": -1})"),
                  "pushes[0].wait_before_s: ",
                  "from 0"},
        Malformed{planOf(kTensor, R"({"version": "1"}, {"version": "2", "faults": {}})"),
                  "pushes[1].faults: ",
                  "a list"},
        Malformed{faultPlan("1"), "pushes[0].faults[0]: ", "an object"},
        Malformed{faultPlan(R"({"at": {"tensor": 0}, "kind": "throw"})"),
                  "pushes[0].faults[0].rank: ",
                  "missing"},
        Malformed{faultPlan(R"({"rank": 4, "at": {"tensor": 0}, "kind": "throw"})"),
                  "pushes[0].faults[0].rank: ",
                  "from 0 to 3"},
        Malformed{
            faultPlan(R"({"rank": 0, "kind": "throw"})"), "pushes[0].faults[0].at: ", "missing"},
        Malformed{faultPlan(R"({"rank": 0, "at": {}, "kind": "throw"})"),
                  "pushes[0].faults[0].at: ",
                  "exactly one"},
        Malformed{faultPlan(R"({"rank": 0, "at": {"tensor": 2}, "kind": "throw"})"),
                  "pushes[0].faults[0].at.tensor: ",
                  "from 0 to 1"},
        Malformed{faultPlan(R"({"rank": 0, "at": {"after": "first"}, "kind": "throw"})"),
                  "pushes[0].faults[0].at.after: ",
                  "last_tensor"},
        Malformed{faultPlan(R"({"rank": 0, "at": {"phase": "done"}, "kind": "throw"})"),
                  "pushes[0].faults[0].at.phase: ",
                  "verdict"},
        Malformed{faultPlan(R"({"rank": 0, "at": {"tensor": 0}, "kind": "trow"})"),
                  "pushes[0].faults[0].kind: ",
                  "wrong_shape"},
        Malformed{faultPlan(R"({"rank": 0, "at": {"tensor": 0}, "kind": "throw", "times": 0})"),
                  "pushes[0].faults[0].times: ",
                  "from 1"},
        Malformed{faultPlan(R"({"rank": 0, "at": {"tensor": 0}, "kind": "throw", "seconds": 1})"),
                  "pushes[0].faults[0].seconds: ",
                  "hang and stop"},
        Malformed{faultPlan(R"({"rank": 0, "at": {"tensor": 0}, "kind": "hang"})"),
                  "pushes[0].faults[0].seconds: ",
                  "missing"},
        Malformed{faultPlan(R"({"rank": 0, "at": {"tensor": 0}, "kind": "stop", "seconds": 0})"),
                  "pushes[0].faults[0].seconds: ",
                  "more than 0"},
        Malformed{faultPlan(R"({"rank": 0, "at": {"phase": "stream"}, "kind": "missing"})"),
                  "pushes[0].faults[0].at: ",
                  "at a tensor"},
        Malformed{faultPlan(R"({"rank": 0, "at": {"tensor": 1}, "kind": "reorder"})"),
                  "pushes[0].faults[0].at: ",
                  "none to change places"},
        Malformed{planOf(kTensor, kPush, R"(, "config_overrides": [])"),
                  "config_overrides: ",
                  "an object"},
        Malformed{planOf(kTensor, kPush, R"(, "config_overrides": {"04": {}})"),
                  "config_overrides.04: ",
                  "no rank"},
        Malformed{planOf(kTensor, kPush, R"(, "config_overrides": {"0": {"a.b": [1]}})"),
                  "config_overrides.0.\"a.b\": ",
                  "a list"}));

TEST(DrillPlan, AllFaultsAreToldAtOnce) {
  const auto plan = parseDrillPlan(
      planOf(R"({"name": 1, "dtype": "x", "shape": [-1]})", R"({"version": 2, "odd": 1})"), "p", 1);
  ASSERT_FALSE(plan.ok());
  for (const char* place : {"tensors[0].name: ",
                            "tensors[0].dtype: ",
                            "tensors[0].shape[0]: ",
                            "pushes[0].version: ",
                            "pushes[0].odd: "}) {
    EXPECT_THAT(plan.status().message(), HasSubstr(std::string("p: ") + place));
  }
}

TEST(DrillPlan, OnlyARegularFileIsRead) {
  const testing::ScratchFolder folder;
  EXPECT_THAT(loadDrillPlan(folder.path(), 1).status().message(), HasSubstr("not a regular file"));
  EXPECT_FALSE(loadDrillPlan(folder.path("none.json"), 1).ok());
  const std::string path = folder.write("plan.json", planOf(kTensor, kPush));
  EXPECT_TRUE(loadDrillPlan(path, 1).ok());
}

}  // namespace
}  // namespace pushrod::tools
