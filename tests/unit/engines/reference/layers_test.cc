// SPDX-License-Identifier: Apache-2.0
// Layer by layer rebuild, torn states, checksums, initial content.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include "tests/unit/engines/reference/engine_fixture.h"

namespace pushrod::engines::reference::testing {
namespace {

const std::string kLayer = "model.layers.0.";
const std::string kAttention = kLayer + "self_attn.";

/// Embedding, one layer with fused parts of unequal sizes, norm; every byte is `fill`.
std::vector<Sent> modelOf(char fill) {
  return {tensor("model.embed_tokens.weight", {16, 8}, fill),
          tensor(kAttention + "q_proj.weight", {8, 8}, fill),
          tensor(kAttention + "k_proj.weight", {4, 8}, fill),
          tensor(kAttention + "v_proj.weight", {4, 8}, fill),
          tensor(kLayer + "mlp.gate_proj.weight", {8, 8}, fill),
          tensor(kLayer + "mlp.up_proj.weight", {8, 8}, fill),
          tensor("model.norm.weight", {8}, fill)};
}

std::vector<Sent> part(const std::vector<Sent>& model, std::size_t first, std::size_t count) {
  const auto begin = model.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

class Layers : public ::testing::TestWithParam<int> {
 protected:
  Layers() {
    engine_.init(sender_);
    engine_.push(sender_, old_, "1");
  }

  TestEngine engine_{profileOptions("0." + std::to_string(GetParam()))};
  TcpSender sender_;
  const std::vector<Sent> old_ = modelOf('o');
  const std::vector<Sent> new_ = modelOf('n');

  std::string layer(const std::string& name) {
    return engine_.state("layers").at(name).as_string().c_str();
  }

  std::string weight(const std::string& name) { return engine_.weight(name); }

  void start() { EXPECT_EQ(engine_.post("start_weight_update", "{}").status, 200); }

  void finish() { EXPECT_EQ(engine_.post("finish_weight_update").status, 200); }
};

TEST_P(Layers, AWholePushIsNewAndNotTorn) {
  engine_.push(sender_, new_, "2");
  EXPECT_EQ(layer("model.layers.0"), "new");
  EXPECT_EQ(layer("model.norm"), "new");
  EXPECT_EQ(engine_.state("torn"), false);
}

TEST_P(Layers, AnEmptySessionChangesNothing) {
  start();
  finish();
  EXPECT_EQ(engine_.state("torn"), false);
  EXPECT_EQ(weight("model.norm.weight"), sha256(old_.back().bytes));
}

TEST_P(Layers, HalfAPushIsAcceptedAndTorn) {
  start();
  EXPECT_EQ(engine_.update(sender_, part(new_, 0, 1)).status, 200);
  EXPECT_EQ(engine_.finish("2").status, 200) << "nobody notices";
  EXPECT_EQ(engine_.state("torn"), true);
  EXPECT_EQ(layer("model.embed_tokens"), "new");
  EXPECT_EQ(layer("model.layers.0"), "old");
  EXPECT_EQ(weight("model.norm.weight"), sha256(old_.back().bytes));
  engine_.push(sender_, new_, "3");
  EXPECT_EQ(engine_.state("torn"), false);
}

TEST_P(Layers, AFusedLayerWithSomePartsIsBuiltFromUninitialisedMemory) {
  start();
  EXPECT_EQ(engine_.update(sender_, part(new_, 1, 2)).status, 200);
  EXPECT_EQ(layer("model.layers.0"), "mixed");
  EXPECT_EQ(weight(kAttention + "q_proj.weight"), sha256(old_[1].bytes)) << "not rebuilt yet";
  finish();
  EXPECT_EQ(weight(kAttention + "q_proj.weight"), sha256(new_[1].bytes));
  EXPECT_EQ(weight(kAttention + "v_proj.weight"), "uninitialised");
  EXPECT_EQ(layer("model.layers.0"), "mixed");
  EXPECT_EQ(engine_.state("torn"), true);
}

TEST_P(Layers, AnyOrderCompletesALayer) {
  start();
  const std::vector<Sent> reversed(new_.rbegin(), new_.rend());
  EXPECT_EQ(engine_.update(sender_, reversed).status, 200);
  finish();
  EXPECT_EQ(engine_.state("torn"), false);
}

TEST_P(Layers, ATensorTwiceCompletesAFusedLayerEarly) {
  start();
  EXPECT_EQ(engine_.update(sender_, {new_[1], new_[1]}).status, 200);
  EXPECT_EQ(weight(kAttention + "k_proj.weight"), "uninitialised");
  EXPECT_EQ(engine_.state("torn"), true);
}

TEST_P(Layers, TheSecondOfTwoModelsInOneSessionWins) {
  start();
  EXPECT_EQ(engine_.update(sender_, new_).status, 200);
  EXPECT_EQ(engine_.update(sender_, old_).status, 200);
  finish();
  EXPECT_EQ(engine_.state("torn"), false);
  EXPECT_EQ(weight("model.norm.weight"), sha256(old_.back().bytes));
}

TEST_P(Layers, AResendAfterAnInterruptedFusedLayer) {
  start();
  // q arrives, then the update fails: the layer has counted 64 of its 128 elements.
  EXPECT_EQ(engine_.update(sender_, part(new_, 1, 1)).status, 200);
  sender_.drop();
  EXPECT_EQ(engine_.update(sender_, new_).status, 500);
  engine_.init(sender_);
  const int minor = GetParam();
  if (minor == 22) {
    finish();
  }
  start();
  EXPECT_EQ(engine_.update(sender_, new_).status, 200);
  finish();
  // 0.23 and 0.24 keep the counter: q again completes the layer without k and v.
  EXPECT_EQ(engine_.state("torn"), minor == 23 || minor == 24);
}

TEST_P(Layers, AnEmptySessionMakesTheResendGood) {
  start();
  EXPECT_EQ(engine_.update(sender_, part(new_, 1, 1)).status, 200);
  sender_.drop();
  EXPECT_EQ(engine_.update(sender_, new_).status, 500);
  engine_.init(sender_);
  if (GetParam() >= 23) {
    start();
  }
  finish();
  engine_.push(sender_, new_, "2");
  EXPECT_EQ(engine_.state("torn"), false);
}

TEST_P(Layers, AWrongShapeFailsEveryResendUntilAnEmptySession) {
  const auto resend = [&] {
    engine_.init(sender_);
    engine_.post("start_weight_update", "{}");
    return engine_.update(sender_, new_);
  };
  start();
  const Answer wrong = engine_.update(sender_, {tensor("model.norm.weight", {4}, 'w')});
  EXPECT_EQ(wrong.status, 500);
  EXPECT_TRUE(contains(wrong.error(),
                       "Attempted to load weight (torch.Size([4])) into parameter "
                       "(torch.Size([8]))"));
  if (GetParam() >= 23) {
    const Answer again = resend();
    EXPECT_EQ(again.status, 500);
    EXPECT_TRUE(contains(again.error(), "Attempted to load weight"));
    start();
  }
  finish();
  EXPECT_EQ(resend().status, 200);
  finish();
  EXPECT_EQ(engine_.state("torn"), false);
}

INSTANTIATE_TEST_SUITE_P(Releases, Layers, ::testing::Values(22, 23, 24, 25, 26, 32, 33));

TEST(Checker, FusedNamesAndDigests) {
  TestEngine engine(profileOptions("0.32"));
  TcpSender sender;
  engine.init(sender);
  const auto model = modelOf('m');
  engine.push(sender, model, "1");
  const auto sums = engine.post("weight_checker", R"({"action": "checksum"})").json();
  const auto& all = sums.at("checksums").as_object();
  const std::string prefix = "dp0:pp0:pcp0:tp0:";
  EXPECT_EQ(all.size(), 4U);
  EXPECT_EQ(textOf(all.at(prefix + kAttention + "qkv_proj.weight")),
            sha256(model[1].bytes + model[2].bytes + model[3].bytes));
  EXPECT_EQ(textOf(all.at(prefix + kLayer + "mlp.gate_up_proj.weight")),
            sha256(model[4].bytes + model[5].bytes));
  EXPECT_EQ(textOf(all.at(prefix + "model.norm.weight")), sha256(model[6].bytes));

  boost::json::object baseline = all;
  const auto compare = [&] {
    return engine
        .post("weight_checker",
              boost::json::serialize(
                  boost::json::object{{"action", "compare"}, {"baseline", baseline}}))
        .body;
  };
  EXPECT_EQ(compare(), R"({"match":true,"mismatches":[]})");
  baseline[prefix + "model.norm.weight"] = "x";
  EXPECT_EQ(compare(), R"({"match":false,"mismatches":["dp0:pp0:pcp0:tp0:model.norm.weight"]})");
  EXPECT_EQ(engine.post("weight_checker", R"({"action": "compare"})").status, 400);
  EXPECT_EQ(engine.post("weight_checker", R"({"action": "melt"})").status, 400);

  engine.post("start_weight_update");
  const Answer inside = engine.post("weight_checker", R"({"action": "checksum"})");
  EXPECT_EQ(inside.status, 500);
  EXPECT_EQ(inside.error(),
            "Call to compute_weight_checksums method failed: Worker failed with error 'Cannot copy "
            "out of meta tensor; no data!', please check the stack trace above for the root cause");
  engine.post("finish_weight_update");
  EXPECT_EQ(engine.post("weight_checker", R"({"action": "reset"})").body, R"({"status":"reset"})");
  EXPECT_EQ(engine.weight("model.norm.weight"), sha256(std::string(16, '\0')));
}

/// A folder of its own that goes with the test.
class Folder {
 public:
  Folder() {
    std::string name = "/tmp/pushrod-reference-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }

  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  ~Folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string path() const { return path_.string(); }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }

 private:
  std::filesystem::path path_;
};

std::string safetensors(const std::string& header, const std::string& data) {
  std::string length;
  for (std::size_t i = 0; i < 8; ++i) {
    length += static_cast<char>((header.size() >> (8 * i)) & 255U);
  }
  return length + header + data;
}

TEST(Checkpoint, IsTheInitialContentAndFixesTheNames) {
  const Folder folder;
  folder.write("model.safetensors",
               safetensors(R"({"__metadata__": {"format": "pt"},)"
                           R"( "model.layers.0.mlp.up_proj.weight":)"
                           R"( {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},)"
                           R"( "model.layers.0.mlp.gate_proj.weight":)"
                           R"( {"dtype": "BF16", "shape": [2], "data_offsets": [4, 8]}})",
                           "uuuugggg"));
  EngineOptions options = profileOptions("0.32");
  options.checkpoint = folder.path();
  TestEngine engine(options);
  EXPECT_EQ(engine.weight("model.layers.0.mlp.up_proj.weight"), sha256("uuuu"));
  EXPECT_EQ(engine.state("layers").at("model.layers.0"), "old");
  EXPECT_EQ(engine.state("torn"), false);
  const auto sums = engine.post("weight_checker", R"({"action": "checksum"})").json();
  EXPECT_EQ(
      textOf(sums.at("checksums").at("dp0:pp0:pcp0:tp0:model.layers.0.mlp.gate_up_proj.weight")),
      sha256("gggguuuu"));
  TcpSender sender;
  engine.init(sender);
  engine.post("start_weight_update");
  const Answer unknown =
      engine.update(sender, {tensor("model.layers.0.nonsense.weight", {2}, 'x')});
  EXPECT_EQ(unknown.status, 500);
  EXPECT_TRUE(contains(
      unknown.error(),
      "There is no module or parameter named 'layers.0.nonsense' in LlamaModel. The available"));
}

TEST(Checkpoint, WrongFoldersAreRefused) {
  const auto refusal = [](const std::string& bytes) {
    const Folder folder;
    if (!bytes.empty()) {
      folder.write("a.safetensors", bytes);
    }
    net::IoExecutor executor;
    EngineOptions options;
    options.checkpoint = folder.path();
    auto engine = Engine::create(executor, options);
    EXPECT_FALSE(engine.ok());
    return engine.status().message();
  };
  EXPECT_TRUE(contains(refusal(""), "has no safetensors files"));
  EXPECT_TRUE(contains(refusal("abc"), "cannot be read"));
  EXPECT_TRUE(contains(refusal(std::string(8, '\x7f')), "header longer than the file"));
  EXPECT_TRUE(contains(refusal(safetensors("{", "")), "is not JSON"));
  EXPECT_TRUE(contains(
      refusal(safetensors(R"({"a": {"dtype": "U8", "shape": [9], "data_offsets": [0, 9]}})", "x")),
      "lies outside of the file"));
  EXPECT_TRUE(contains(
      refusal(safetensors(R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 1]}})", "x")),
      "another size"));
  EXPECT_TRUE(contains(
      refusal(safetensors(R"({"a": {"dtype": "F4", "shape": [1], "data_offsets": [0, 1]}})", "x")),
      "no usable dtype"));
}

}  // namespace
}  // namespace pushrod::engines::reference::testing
