// SPDX-License-Identifier: Apache-2.0
#include "tools/program.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pushrod/version.h>

#include "tests/unit/tools/scratch_folder.h"
#include "tools/unheard_ranks.h"

namespace pushrod::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ScratchFolder;

struct Ran {
  int exit = 0;
  std::string out;
  std::string err;
};

Ran runWith(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "pushrod");
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Ran ran;
  ran.exit = runProgram(static_cast<int>(arguments.size()), arguments.data());
  ran.out = ::testing::internal::GetCapturedStdout();
  ran.err = ::testing::internal::GetCapturedStderr();
  return ran;
}

constexpr const char* kConfig =
    "engines:\n  list:\n    - url: http://127.0.0.1:9\ntransport: {kind: tcp}\n"
    "metrics: {listen: \"\"}\n";

TEST(Program, UsageErrorsAreRefusedInOneParagraph) {
  struct Row {
    std::vector<const char*> arguments;
    const char* fragment;
  };

  const std::vector<Row> rows = {
      {{}, "subcommand"},
      {{"nonsense"}, "nonsense"},
      {{"--nonsense"}, "nonsense"},
      {{"push"}, "--config"},
      {{"push", "--config", "f", "--version", "1"}, "--checkpoint"},
      {{"push", "--config", "f", "--checkpoint", "d"}, "--version"},
      {{"push", "--config", "f", "--checkpoint", "d", "--version", ""}, "--version"},
      {{"push", "--config", "f", "--checkpoint", "d", "--version", "1", "--ranks", "0"}, "--ranks"},
      {{"push", "--config", "f", "--checkpoint", "d", "--version", "1", "--ranks", "x"}, "--ranks"},
      {{"push", "--config", "f", "--checkpoint", "d", "--version", "1", "--rank", "0"}, "--rank"},
      {{"push",
        "--config",
        "f",
        "--checkpoint",
        "d",
        "--version",
        "1",
        "--ranks",
        "2",
        "--rank",
        "0",
        "--world-size",
        "2"},
       "--ranks"},
      {{"config"}, "subcommand"},
      {{"config", "check"}, "file"},
      {{"config", "check", "a", "b"}, "b"},
      {{"status"}, "url"},
      {{"status", "http://"}, "http"},
      {{"demo", "extra"}, "extra"},
      {{"engine", "--port", "many"}, "--port"},
  };
  for (const Row& row : rows) {
    const Ran ran = runWith(row.arguments);
    const std::string label = row.arguments.empty() ? "nothing" : row.arguments.front();
    EXPECT_EQ(ran.exit, 2) << label << ": " << ran.err;
    EXPECT_EQ(ran.out, "") << label;
    EXPECT_THAT(ran.err, HasSubstr(row.fragment)) << label;
    EXPECT_THAT(ran.err, ::testing::StartsWith("pushrod: ")) << label;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << label << ": " << ran.err;
  }
}

TEST(Program, HelpIsOnEveryCommand) {
  for (const std::vector<const char*>& command : std::vector<std::vector<const char*>>{
           {}, {"push"}, {"demo"}, {"engine"}, {"config"}, {"config", "check"}, {"status"}}) {
    std::vector<const char*> arguments = command;
    arguments.push_back("--help");
    const Ran ran = runWith(arguments);
    EXPECT_EQ(ran.exit, 0);
    EXPECT_THAT(ran.out, HasSubstr("--help"));
    EXPECT_EQ(ran.err, "");
  }
  // What only this program's own processes use is not offered.
  EXPECT_THAT(runWith({"push", "--help"}).out, ::testing::Not(HasSubstr("--orders")));
}

TEST(Program, VersionNamesTheLibraries) {
  const Ran ran = runWith({"--version"});
  EXPECT_EQ(ran.exit, 0);
  EXPECT_THAT(ran.out, ::testing::StartsWith("pushrod " PUSHROD_VERSION "\n"));
  for (const char* library :
       {"Boost 1.", "OpenSSL ", "Gloo ", "yaml-cpp ", "prometheus-cpp ", "CLI11 ", "xxHash "}) {
    EXPECT_THAT(ran.out, HasSubstr(library));
  }
}

TEST(Program, ConfigCheckTellsEveryFaultWithItsPlace) {
  const ScratchFolder folder;
  const std::string good = folder.write("good.yaml", kConfig);
  const std::string bad = folder.write("bad.yaml", "jobb: x\ntimeouts: {push: 5}\n");
  EXPECT_EQ(runWith({"config", "check", good.c_str()}).exit, 0);
  const Ran effective = runWith({"config", "check", good.c_str(), "--effective"});
  EXPECT_EQ(effective.exit, 0);
  EXPECT_THAT(effective.out, HasSubstr("transport:"));
  const Ran faults = runWith({"config", "check", bad.c_str()});
  EXPECT_EQ(faults.exit, 2);
  EXPECT_EQ(faults.out, "");
  EXPECT_THAT(faults.err, HasSubstr(bad + ":1:1: "));
  EXPECT_THAT(faults.err, HasSubstr(bad + ":2:"));
  EXPECT_EQ(runWith({"config", "check", folder.path("none").c_str()}).exit, 2);
}

TEST(Program, APushIsRefusedBeforeAnybodyIsContacted) {
  const ScratchFolder folder;
  const std::string config = folder.write("push.yaml", kConfig);
  const std::string bad = folder.write("bad.yaml", "job: 1\nno: such\n");
  const std::string model = folder.path("model");
  std::filesystem::create_directory(model);
  folder.write(
      "model/model.safetensors",
      testing::safetensors(R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}})", "x"));
  for (const char* ranks : {"", "--ranks=2"}) {
    const auto push =
        [&](const std::string& file, const std::string& checkpoint, const std::string& report) {
          std::vector<const char*> arguments = {"push",
                                                "--config",
                                                file.c_str(),
                                                "--checkpoint",
                                                checkpoint.c_str(),
                                                "--version",
                                                "1",
                                                "--report",
                                                report.c_str()};
          if (*ranks != '\0') {
            arguments.push_back(ranks);
          }
          return runWith(arguments);
        };
    const Ran badConfig = push(bad, model, folder.path("r.json"));
    EXPECT_EQ(badConfig.exit, 2);
    EXPECT_THAT(badConfig.err, HasSubstr(bad + ":"));
    const Ran badReport = push(config, model, folder.path("none/r.json"));
    EXPECT_EQ(badReport.exit, 2);
    EXPECT_THAT(badReport.err, HasSubstr("--report"));
    const Ran badTensor = push(config, model, folder.path("r.json"));
    EXPECT_EQ(badTensor.exit, 2);
    EXPECT_THAT(badTensor.err, HasSubstr("model.safetensors: tensor \"w\""));
    EXPECT_THAT(badTensor.err, HasSubstr("no engine was contacted"));
    EXPECT_EQ(push(config, folder.path("nowhere"), folder.path("r.json")).exit, 2);
    // Each refusal that can be reported is.
    EXPECT_THAT(folder.read("r.json"), HasSubstr("\"outcome\":\"refused\""));
    std::filesystem::remove(folder.path("r.json"));
  }
}

TEST(Program, StatusOfNobodySaysSo) {
  const Ran ran = runWith({"status", "127.0.0.1:1"});
  EXPECT_EQ(ran.exit, 3);
  EXPECT_THAT(ran.err, HasSubstr("http://127.0.0.1:1: no status"));
}

TEST(UnheardRanks, RoomIsNotWhatStoppedRanksLacked) {
  EXPECT_THAT(unheardText({{.code = 130}, {.code = 143}}, "/tmp/x"),
              AllOf(HasSubstr("told to stop"), Not(HasSubstr("room"))));
  EXPECT_THAT(unheardText({{.code = 130}, {.code = 3}}, "/tmp/x"), HasSubstr("room"));
}

}  // namespace
}  // namespace pushrod::tools
