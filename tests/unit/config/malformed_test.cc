// SPDX-License-Identifier: Apache-2.0
// Texts that must be refused, each with the place and what the message must say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/config_test_support.h"

namespace pushrod::config::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

struct Row {
  std::string text;
  std::string place;  ///< LINE:COLUMN
  std::string says;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << quoted(row.text);
}

class Malformed : public ::testing::TestWithParam<Row> {};

TEST_P(Malformed, IsRefusedWithPlaceAndReason) {
  const Row& row = GetParam();
  const auto faults = faultsOf(row.text, {{"SET", "x y"}, {"SECRET", "s3cr3t"}, {"NL", "a\nb"}});
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_THAT(faults[0], StartsWith("f.yaml:" + row.place + ": "));
  EXPECT_THAT(faults[0], HasSubstr(row.says));
  EXPECT_THAT(faults[0], ::testing::Not(HasSubstr("s3cr3t")));
}

// Every row but the whole-file ones begins with the engine list as its first line.
Row with(const std::string& text, const std::string& place, const std::string& says) {
  return {kEngine + text, place, says};
}

INSTANTIATE_TEST_SUITE_P(
    WholeFile,
    Malformed,
    ::testing::Values(
        Row{"", "1:1", "engines.list: there is no engine"},
        Row{"# nothing\n", "1:1", "engines.list: there is no engine"},
        Row{"---\n", "1:1", "engines.list: there is no engine"},
        Row{"job: a\n", "1:1", "engines.list: there is no engine"},
        Row{"engines: {list: []}\n", "1:17", "engines.list: there is no engine"},
        Row{"- a\n- b\n", "1:1", "must be a section of keys, not a list"},
        Row{"just text\n", "1:1", "must be a section of keys, not the single value \"just text\""},
        Row{kEngine + "---\njob: b\n", "2:1", "one document"},
        Row{kEngine + "...\nmore\n", "3:1", "one document"},
        Row{"\n,", "2:1", "one document"},
        Row{kEngine + "job: {a\n", "2:7", "not valid YAML"},
        Row{kEngine + "job: 'a\n", "3:1", "not valid YAML: illegal EOF"},
        Row{kEngine + "job: \"a\n", "3:1", "not valid YAML: illegal EOF"},
        Row{kEngine + "push:\n\t- a\n", "3:2", "not valid YAML"},
        Row{kEngine + "job: a: b\n", "2:7", "not valid YAML"},
        Row{kEngine + "job: \"\xff\"\n", "2:7", "not UTF-8"},
        Row{kEngine + "job: \"\xc0\x80\"\n", "2:7", "not UTF-8"},
        Row{kEngine + "job: \"\xed\xa0\x80\"\n", "2:7", "not UTF-8"},
        Row{kEngine + "job: a\x04\n", "2:7", "control character 4"},
        Row{std::string("job: a\0b", 8), "1:7", "control character 0"},
        Row{std::string("\xff\xfej\0", 4), "1:1", "not UTF-8"},
        Row{std::string((std::size_t{1} << 20) + 1, '#'), "1:1", "more than the 1048576"},
        Row{"a: " + std::string(40, '[') + std::string(40, ']'), "1:19", "deeper than 16 levels"}));

INSTANTIATE_TEST_SUITE_P(
    KeysAndTypes,
    Malformed,
    ::testing::Values(
        with("jobb: a\n", "2:1", "jobb: unknown key; the nearest known key is job"),
        with("push: {verfy: none}\n",
             "2:8",
             "push.verfy: unknown key; the nearest known key is push.verify"),
        with("push: {a: 1}\n", "2:8", "push.a: unknown key; the nearest known"),
        with("push:\n  dtypes:\n    defalt: bfloat16\n",
             "4:5",
             "push.dtypes.default, which belongs under push.dtypes"),
        with("transport:\n  kind: tcp\n  buffer: 1MiB\n  kind: tcp\n",
             "5:3",
             "transport.kind: duplicate key, first given at line 3, column 3"),
        with("log: {level: info}\nlog: {level: info}\n",
             "3:1",
             "log: duplicate key, first given at line 2"),
        with("engines: {profile: auto}\n", "2:1", "engines: duplicate key, first given at line 1"),
        with("? [a]\n: b\n", "2:3", "a key must be a text, not a list"),
        with("~: b\n", "2:1", "a key must be a text, not no value"),
        with("push:\n", "2:1", "push: has no value"),
        with("job: ~\n", "2:1", "job: has no value"),
        with("job: null\n", "2:1", "job: has no value"),
        with("push: {wave: }\n", "2:8", "push.wave: has no value"),
        with("push: fast\n",
             "2:7",
             "push: must be a section with keys below it, not the single value"),
        with("push: [a]\n", "2:7", "push: must be a section with keys below it, not a list"),
        with("job: [a]\n", "2:6", "job: must be a text, not a list"),
        with("job: {a: b}\n", "2:6", "job: must be a text, not a section"),
        with("job: true\n", "2:6", "is a switch, but this key takes a text"),
        with("job: &a x\nranks: {store: *a}\n", "3:16", "aliases"),
        with("<<: {job: a}\n", "2:1", "merge keys are not supported"),
        with("push: {wave: !!int 3}\n", "2:14", "tags"),
        with("push: {flush: yes}\n", "2:15", "\"yes\" is not a switch; write true or false"),
        with("push: {flush: on}\n", "2:15", "\"on\" is not a switch"),
        with("push: {flush: True}\n", "2:15", "\"True\" is not a switch"),
        with("push: {flush: 1}\n", "2:15", "\"1\" is not a switch"),
        with("push: {flush: \"true\"}\n", "2:15", "without quotes"),
        with("push: {flush: [true]}\n", "2:15", "must be true or false, not a list")));

INSTANTIATE_TEST_SUITE_P(
    Numbers,
    Malformed,
    ::testing::Values(
        with("config_version: 2\n", "2:17", "config_version: 2 is out of range"),
        with("config_version: one\n", "2:17", "not a whole number"),
        with("transport: {buffers: 0}\n",
             "2:22",
             "transport.buffers: 0 is out of range; give a value from 1 to 64"),
        with("transport: {buffers: 65}\n", "2:22", "65 is out of range"),
        with("transport: {buffers: -1}\n", "2:22", "-1 is out of range"),
        with("transport: {buffers: two}\n",
             "2:22",
             "\"two\" is not a whole number; give one from 1 to 64"),
        with("transport: {buffers: \"2\"}\n",
             "2:22",
             "is a text, not a whole number; write it without quotes"),
        with("transport: {buffers: 010}\n", "2:22", "leading zero"),
        with("transport: {buffers: 0x10}\n", "2:22", "not a whole number"),
        with("transport: {buffers: 2.0}\n", "2:22", "not a whole number"),
        with("transport: {buffers: 1e1}\n", "2:22", "not a whole number"),
        with("transport: {buffers: 99999999999999999999}\n", "2:22", "too large"),
        with("transport: {port: 65536}\n", "2:19", "from 0 to 65535"),
        with("push: {verify_every: 0}\n", "2:22", "out of range"),
        with("timeouts: {connect: 30}\n", "2:21", "\"30\" has no unit; write a duration such as"),
        with("timeouts: {connect: 0s}\n",
             "2:21",
             "0s is out of range; give a value from 1ms to 168h"),
        with("timeouts: {connect: 169h}\n", "2:21", "169h is out of range"),
        with("timeouts: {connect: 1.5s}\n", "2:21", "\"1.5s\" is not a duration"),
        with("timeouts: {connect: -1s}\n", "2:21", "is not a duration"),
        with("timeouts: {connect: 1 s}\n", "2:21", "is not a duration"),
        with("timeouts: {connect: 1S}\n", "2:21", "is not a duration"),
        with("timeouts: {connect: 1d}\n", "2:21", "is not a duration"),
        with("timeouts: {connect: s}\n", "2:21", "is not a duration"),
        with("timeouts: {connect: \"\"}\n", "2:21", "is not a duration"),
        with("timeouts: {connect: 99999999999999999h}\n", "2:21", "too large"),
        with("timeouts: {connect: forever}\n", "2:21", "is not a duration"),
        with("transport: {buffer: 1073741824}\n", "2:21", "has no unit; write a size such as"),
        with("transport: {buffer: 1GB}\n", "2:21", "\"1GB\" is not a size"),
        with("transport: {buffer: 1gib}\n", "2:21", "is not a size"),
        with("transport: {buffer: 0B}\n",
             "2:21",
             "0B is out of range; give a value from 1B to 1TiB"),
        with("transport: {buffer: 2TiB}\n", "2:21", "2TiB is out of range"),
        with("transport: {buffer: 99999999TiB}\n", "2:21", "too large")));

INSTANTIATE_TEST_SUITE_P(
    Texts,
    Malformed,
    ::testing::Values(
        with("job: a b\n", "2:6", "job: \"a b\" must have 1 to 64 letters"),
        with("job: ../x\n", "2:6", "job: \"../x\" must have"),
        with("job: \"\"\n", "2:6", "job: \"\" must have"),
        with("job: \"a\\nb\"\n", "2:6", "control character"),
        with("ranks: {store: /tmp/x}\n", "2:16", "is not a meeting place"),
        with("ranks: {store: \"file://x\"}\n", "2:16", "is not a meeting place"),
        with("ranks: {store: \"tcp://host\"}\n", "2:16", "is not a meeting place"),
        with("ranks: {store: \"tcp://host:0\"}\n", "2:16", "is not a meeting place"),
        with("ranks: {store: \"etcd://host:1\"}\n", "2:16", "is not a meeting place"),
        with("transport: {kind: TCP}\n", "2:19", "\"TCP\" is not one of nccl, ipc, tcp, shm"),
        with("transport: {kind: tcpp}\n", "2:19", "did you mean tcp?"),
        with("transport: {bind: \"0.0.0.0:80\"}\n", "2:19", "without a port"),
        with("metrics: {listen: \"9464\"}\n", "2:19", "is not an address to listen on"),
        with("metrics: {listen: \":9464\"}\n", "2:19", "is not an address to listen on"),
        with("metrics: {listen: \"h:99999\"}\n", "2:19", "is not an address to listen on"),
        with("metrics: {listen: \"::1:80\"}\n", "2:19", "is not an address to listen on"),
        with("log: {level: verbose}\n", "2:14", "is not one of debug, info, warning, error"),
        with("push: {dtypes: {default: bf16}}\n", "2:26", "is not one of the dtypes bool, uint8"),
        with("push: {dtypes: {overrides: [a]}}\n", "2:28", "must be a section of"),
        with("push: {dtypes: {overrides: {\"a*\": int4}}}\n", "2:35", "is not one of the dtypes"),
        with("push: {dtypes: {overrides: {\"\": int8}}}\n", "2:29", "a name pattern must be"),
        with("push: {dtypes: {overrides: {a: int8, a: int8}}}\n", "2:38", "duplicate key"),
        with("job: ${UNSET_NAME}\n", "2:6", "environment variable UNSET_NAME is not set"),
        with("job: \"${}\"\n", "2:6", "without a variable's name"),
        with("job: \"${A-B}\"\n", "2:6", "without a variable's name"),
        with("job: ${OPEN\n", "2:6", "without a variable's name"),
        with("job: ${SET}\n", "2:6", "\"${SET}\" must have 1 to 64"),
        with("ranks: {interface: \"${NL}\"}\n", "2:20", "control character"),
        with("push: {wave: \"${SECRET}\"}\n",
             "2:14",
             "\"${SECRET}\" stands for a value that is not a whole number"),
        with("timeouts: {push: \"${SECRET}\"}\n",
             "2:18",
             "stands for a value that is not a duration"),
        with("metrics: {listen: \"${SECRET}\"}\n", "2:19", "\"${SECRET}\" is not an address")));

Row engines(const std::string& text, const std::string& place, const std::string& says) {
  return {"engines:\n  " + text + "\n", place, says};
}

INSTANTIATE_TEST_SUITE_P(
    Engines,
    Malformed,
    ::testing::Values(
        engines("list: http://a:1", "2:9", "must be a list of engines"),
        engines("list: {url: \"http://a:1\"}", "2:9", "must be a list of engines"),
        engines("list: [\"http://a:1\"]", "2:10", "engines.list[0]: must be a section with a url"),
        engines("list: [{name: a}]", "2:10", "engines.list[0]: has no url"),
        engines("list: [{url: \"a:1\"}]", "2:16", "is not an engine's address"),
        engines("list: [{url: \"ftp://a:1\"}]", "2:16", "is not an engine's address"),
        engines("list: [{url: \"http://\"}]", "2:16", "no usable host and port"),
        engines("list: [{url: \"http://a:0\"}]", "2:16", "no usable host and port"),
        engines("list: [{url: \"http://a:65536\"}]", "2:16", "no usable host and port"),
        engines("list: [{url: \"http://::1:80\"}]", "2:16", "no usable host and port"),
        engines("list: [{url: \"http://a b:1\"}]", "2:16", "no usable host and port"),
        engines("list: [{url: \"http://a:1/x?y=1\"}]", "2:16", "has a query"),
        engines("list: [{url: \"http://me:s3cr3t@a:1\"}]",
                "2:16",
                "the value holds a user name or password"),
        engines("list: [{url: \"http://a:1\", nam: x}]",
                "2:30",
                "engines.list[0].nam: unknown key; the nearest known key is engines.list[].name"),
        engines("list: [{url: \"http://a:1\", url: \"http://a:2\"}]",
                "2:30",
                "engines.list[0].url: duplicate key"),
        engines("list: [{url: \"http://a:1\", name: \"\"}]",
                "2:36",
                "engines.list[0].name: \"\" must have 1 to 128"),
        engines("list: [{url: \"http://a:1\", expect: 4}]",
                "2:38",
                "engines.list[0].expect: must be a section"),
        engines("list: [{url: \"http://a:1\", expect: {world_size: 0}}]",
                "2:51",
                "engines.list[0].expect.world_size: 0 is out of range"),
        engines("list: [{url: \"http://a:1\", transport: mixed}]",
                "2:41",
                "is not one of nccl, ipc, tcp, shm"),
        engines("list: [{url: \"http://a:1\"}, {url: \"http://A:1/\"}]",
                "2:37",
                "engines.list[1].url: the address \"a:1\" is already that of engines.list[0].url"),
        engines("list: [{url: \"http://a\"}, {url: \"http://a:80\"}]",
                "2:35",
                "is already that of engines.list[0].url"),
        engines("list: [{url: \"http://a:1\", name: n}, {url: \"http://b:1\", name: n}]",
                "2:66",
                "the name \"n\" is already that of engines.list[0].name"),
        engines("list: [{url: \"http://a:1\"}]\n  file: x",
                "3:9",
                "engines.file: stands beside engines.list"),
        engines("list: [{url: \"http://a:1\"}]\n  min_healthy: 2",
                "3:16",
                "2 is more than the 1 engines"),
        engines("list: [{url: \"http://a:1\"}]\n  min_healthy: 0", "3:16", "is no count from 1"),
        engines("list: [{url: \"http://a:1\"}]\n  min_healthy: 101%", "3:16", "no share from"),
        engines("list: [{url: \"http://a:1\"}]\n  profile: v0.27", "3:12", "is no profile"),
        engines("list: [{url: \"http://a:1\"}]\n  profile: 0.27.", "3:12", "is no profile"),
        engines("list: [{url: \"http://a:1\"}]\n  profile: 27", "3:12", "is no profile"),
        engines("list: [{url: \"http://a:1\"}]\n  token_env: s3cr3t-token",
                "3:14",
                "the value is not the name of an environment variable"),
        engines("list: [{url: \"http://a:1\"}]\n  proxy: \"http://me:s3cr3t@p:1\"",
                "3:10",
                "the value is not a proxy's address"),
        engines("list: [{url: \"https://a:1\"}]\n  tls: {cert: c.pem}",
                "3:15",
                "needs engines.tls.key beside it"),
        engines("list: [{url: \"https://a:1\"}]\n  wake: true",
                "3:9",
                "is not one of false, weights, all")));

INSTANTIATE_TEST_SUITE_P(
    Together,
    Malformed,
    ::testing::Values(
        with("timeouts: {push: 60s, request: 90s}\n",
             "2:32",
             "timeouts.request: 90s is longer than timeouts.push (1m)"),
        with("timeouts: {request: 90s, push: 60s}\n",
             "2:21",
             "timeouts.request: 90s is longer than timeouts.push (1m)"),
        with("timeouts: {push: 1s, gather: 2s}\n", "2:30", "timeouts.gather: 2s is longer"),
        with("timeouts: {push: 1s, startup: 2s}\n", "2:31", "timeouts.startup: 2s is longer")));

TEST(Faults, AllOfAFileComeInOneRunInOrder) {
  const auto faults = faultsOf(
      "jobb: a\ntransport:\n  buffer: 12\n  kind: tpc\nengines:\n  list:\n    - name: x\n");
  EXPECT_THAT(faults,
              ElementsAre(StartsWith("f.yaml:1:1: jobb: "),
                          StartsWith("f.yaml:3:11: transport.buffer: "),
                          StartsWith("f.yaml:4:9: transport.kind: "),
                          StartsWith("f.yaml:7:7: engines.list[0]: ")));
}

TEST(Faults, NestingIsBoundedBeforeItIsRead) {
  for (const char* open : {"[", "{", "- ", "? ", "[{"}) {
    std::string text;
    while (text.size() < 200000) {
      text += open;
    }
    EXPECT_THAT(faultsOf(text), ElementsAre(HasSubstr("deeper than 16 levels"))) << open;
  }
}

TEST(Faults, AreBoundedInNumber) {
  std::string text = kEngine;
  for (int i = 0; i < 3000; ++i) {
    text += "x" + std::to_string(i) + ": 1\n";
  }
  const auto faults = faultsOf(text);
  EXPECT_THAT(faults, SizeIs(501));
  EXPECT_THAT(faults.back(), HasSubstr("2500 more faults are not shown"));
}

}  // namespace
}  // namespace pushrod::config::test
