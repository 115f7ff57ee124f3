// SPDX-License-Identifier: Apache-2.0
// The receiving side of the tcp wire format.
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "engines/receiver/tcp_info.h"
#include "tests/unit/engines/reference/engine_fixture.h"

namespace pushrod::engines::reference::testing {
namespace {

std::vector<TensorSpec> specs(const std::vector<std::int64_t>& sizes) {
  std::vector<TensorSpec> tensors;
  for (const std::int64_t size : sizes) {
    tensors.push_back({"t" + std::to_string(tensors.size()), DType::kUint8, {size}, 0});
  }
  return tensors;
}

std::string cutText(const std::vector<std::int64_t>& sizes, std::uint64_t buffer) {
  std::string text;
  for (const receiver::ChunkPlan& plan : receiver::cutChunks(specs(sizes), buffer)) {
    text += std::to_string(plan.first) + "+" + std::to_string(plan.count) + ":" +
            std::to_string(plan.bytes) + " ";
  }
  return text;
}

TEST(ChunkRule, ClosesAfterTheTensorThatExceedsTheBuffer) {
  EXPECT_EQ(cutText({4, 4, 4}, 10), "0+3:12 ");
  EXPECT_EQ(cutText({5, 5, 4}, 10), "0+3:14 ") << "a sum equal to the limit stays open";
  EXPECT_EQ(cutText({5, 5}, 10), "0+2:10 ");
  EXPECT_EQ(cutText({20, 1, 20, 3}, 10), "0+1:20 1+2:21 3+1:3 ");
  EXPECT_EQ(cutText({11, 0, 0}, 10), "0+1:11 ") << "no chunk for a rest without bytes";
  EXPECT_EQ(cutText({0, 0}, 10), "");
  EXPECT_EQ(cutText({}, 10), "");
  EXPECT_EQ(cutText({0, 11, 0, 2}, 10), "0+2:11 2+2:2 ");
}

class Tcp : public ::testing::Test {
 protected:
  TestEngine engine_{profileOptions("0.32")};
  TcpSender sender_;
  const std::vector<Sent> model_ = {tensor("model.embed_tokens.weight", {4, 8}, 'e'),
                                    tensor("model.norm.weight", {8}, 'n')};

  void open(std::uint64_t buffer = 1U << 20U) {
    EXPECT_EQ(engine_.init(sender_, 1, buffer).status, 200);
    EXPECT_EQ(engine_.post("start_weight_update").status, 200);
  }
};

TEST_F(Tcp, CleanUpdate) {
  EXPECT_EQ(engine_.init(sender_).status, 200);
  engine_.push(sender_, model_, "42");
  EXPECT_EQ(engine_.get("weight_info").body, R"({"weight_version":"42"})");
  const auto weights = engine_.state("weights");
  for (const Sent& sent : model_) {
    EXPECT_EQ(textOf(weights.at(sent.name)), sha256(sent.bytes));
  }
  EXPECT_EQ(engine_.state("torn"), false);
  EXPECT_EQ(engine_.state("connections"), 1);
}

TEST_F(Tcp, SeveralChunksZeroSizesAndNoDigest) {
  open(60);
  const std::vector<Sent> tensors = {tensor("a", {0, 3}, 'x'),
                                     tensor("b", {4, 8}, 'b'),
                                     tensor("c", {8}, 'c'),
                                     tensor("d", {0}, 'x'),
                                     {"s", "float32", {}, "abcd"},
                                     tensor("z", {0}, 'x')};
  auto answer = engine_.postLater("update_weights", TcpSender::updateBody(tensors));
  sender_.frame(1, 0, 64, 0, tensors[1].bytes);
  sender_.frame(1, 1, 20, digestOf(tensors[2].bytes + "abcd"), tensors[2].bytes + "abcd");
  sender_.frame(2, 2, 0, 0, "");
  EXPECT_EQ(answer.get().status, 200);
  EXPECT_EQ(engine_.finish("1").status, 200);
  const auto weights = engine_.state("weights");
  for (const Sent& sent : tensors) {
    EXPECT_EQ(textOf(weights.at(sent.name)), sha256(sent.bytes)) << sent.name;
  }
}

TEST_F(Tcp, SeveralUpdatesInOneSession) {
  open();
  EXPECT_EQ(engine_.update(sender_, {model_[0]}).status, 200);
  EXPECT_EQ(engine_.update(sender_, {model_[1]}).status, 200);
  EXPECT_EQ(engine_.update(sender_, {}).status, 200) << "no tensors, only the end";
  EXPECT_EQ(engine_.finish("1").status, 200);
  EXPECT_EQ(engine_.state("torn"), false);
}

struct BadStream {
  const char* name;
  std::function<void(TcpSender&)> play;
  const char* text;
};

class TcpErrors : public ::testing::TestWithParam<BadStream> {};

TEST_P(TcpErrors, FailTheUpdateWithTheReasonAndCloseEverything) {
  TestEngine engine(profileOptions("0.32"));
  TcpSender sender;
  EXPECT_EQ(engine.init(sender, 1, 4).status, 200);
  engine.post("start_weight_update");
  // Buffer 4: two chunks of 8 bytes.
  const std::vector<Sent> tensors = {tensor("a", {4}, 'a'), tensor("b", {4}, 'b')};
  auto pending = engine.postLater("update_weights", TcpSender::updateBody(tensors));
  GetParam().play(sender);
  const Answer answer = pending.get();
  EXPECT_EQ(answer.status, 500);
  EXPECT_TRUE(contains(answer.error(), GetParam().text));
  EXPECT_EQ(engine.state("session"), "closed");
  EXPECT_EQ(engine.state("connections"), 0);
  EXPECT_EQ(engine.post("start_weight_update").status, 200);
  EXPECT_TRUE(contains(engine.post("update_weights", TcpSender::updateBody(tensors)).error(),
                       "not initialized"));
}

const std::string kA(8, 'a');
const std::string kB(8, 'b');

INSTANTIATE_TEST_SUITE_P(
    Streams,
    TcpErrors,
    ::testing::Values(
        BadStream{"WrongLength",
                  [](TcpSender& s) { s.frame(1, 0, 7, 0, "aaaaaaa"); },
                  "chunk 0 has 7 bytes, the list and the buffer size make it 8"},
        BadStream{"WrongIndex",
                  [](TcpSender& s) { s.frame(1, 1, 8, 0, kA); },
                  "chunk index 1, expected 0"},
        BadStream{"RepeatedIndex",
                  [](TcpSender& s) {
                    s.frame(1, 0, 8, 0, kA);
                    s.frame(1, 0, 8, 0, kB);
                  },
                  "chunk index 0, expected 1"},
        BadStream{"WrongDigest",
                  [](TcpSender& s) { s.frame(1, 0, 8, digestOf(kB), kA); },
                  "chunk 0 has another digest than its frame"},
        BadStream{"EarlyEnd",
                  [](TcpSender& s) {
                    s.frame(1, 0, 8, digestOf(kA), kA);
                    s.frame(2, 1, 0, 0, "");
                  },
                  "ended early, before chunk 1"},
        BadStream{"EndWithWrongCount",
                  [](TcpSender& s) {
                    s.frame(1, 0, 8, 0, kA);
                    s.frame(1, 1, 8, 0, kB);
                    s.frame(2, 1, 0, 0, "");
                  },
                  "expected index 2"},
        BadStream{"EndWithLength",
                  [](TcpSender& s) {
                    s.frame(1, 0, 8, 0, kA);
                    s.frame(1, 1, 8, 0, kB);
                    s.frame(2, 2, 3, 0, "abc");
                  },
                  "length 3"},
        BadStream{"ChunkInPlaceOfTheEnd",
                  [](TcpSender& s) {
                    s.frame(1, 0, 8, 0, kA);
                    s.frame(1, 1, 8, 0, kB);
                    s.frame(1, 2, 8, 0, kB);
                  },
                  "where the end was due after 2 chunks"},
        BadStream{
            "UnknownKind", [](TcpSender& s) { s.frame(9, 0, 0, 0, ""); }, "unknown frame kind 9"},
        BadStream{"Abort",
                  [](TcpSender& s) {
                    s.frame(1, 0, 8, 0, kA);
                    s.frame(3, 0, 11, 0, "rank 2 died");
                  },
                  "aborted by the source: rank 2 died"},
        BadStream{"AbortTooLong", [](TcpSender& s) { s.frame(3, 0, 4097, 0, ""); }, "at most 4096"},
        BadStream{"ClosedInHeader",
                  [](TcpSender& s) {
                    s.raw("abc");
                    s.drop();
                  },
                  "the source closed the connection after 3 of 24 bytes"},
        BadStream{"ClosedInPayload",
                  [](TcpSender& s) {
                    s.frame(1, 0, 8, 0, "aaa");
                    s.drop();
                  },
                  "chunk 0: tensor a: the source closed the connection after 3 of 8 bytes"}),
    [](const ::testing::TestParamInfo<BadStream>& entry) { return entry.param.name; });

TEST_F(Tcp, AHelloRefusedFailsInitWithTheReason) {
  for (const auto& [code, text] : {std::pair{1, "unknown channel"},
                                   std::pair{2, "rank out of range or taken"},
                                   std::pair{3, "the source is closing"}}) {
    auto pending = engine_.postLater("init_weight_transfer_engine", sender_.initBody(2));
    sender_.accept(1, static_cast<std::uint8_t>(code));
    const Answer answer = pending.get();
    EXPECT_EQ(answer.status, 500);
    EXPECT_TRUE(contains(answer.error(), text));
  }
}

TEST_F(Tcp, InitAgainReplacesTheConnections) {
  open();
  TcpSender other;
  EXPECT_EQ(engine_.init(other).status, 200);
  EXPECT_TRUE(sender_.dropped());
  EXPECT_EQ(engine_.update(other, model_).status, 200);
}

TEST_F(Tcp, SeveralSourcesOneAfterAnother) {
  TcpSender second;
  const std::string info =
      R"({"init_info": {"protocol": 1, "sources": [{"src": 0, "address": "127.0.0.1", "port": )" +
      std::to_string(sender_.port()) + R"(}, {"src": 1, "address": "127.0.0.1", "port": )" +
      std::to_string(second.port()) +
      R"(}], "rank_offset": 2, "world_size": 3, "channel": "00112233445566778899aabbccddeeff",)" +
      R"( "packed_buffer_size_bytes": 1024}})";
  auto init = engine_.postLater("init_weight_transfer_engine", info);
  EXPECT_EQ(sender_.accept(1).begin()->first, 2U);
  EXPECT_EQ(second.accept(1).begin()->first, 2U);
  EXPECT_EQ(init.get().status, 200);
  EXPECT_EQ(engine_.state("connections"), 2);
  engine_.post("start_weight_update");
  EXPECT_EQ(engine_.update(sender_, {model_[0]}).status, 200);
  std::string body = TcpSender::updateBody({model_[1]});
  body.insert(body.find("\"names\""), "\"src\": 1, ");
  auto update = engine_.postLater("update_weights", body);
  second.send({model_[1]});
  EXPECT_EQ(update.get().status, 200);
  EXPECT_EQ(engine_.finish("2").status, 200);
  EXPECT_EQ(engine_.state("torn"), false);
}

TEST(TcpReuse, EmptyListsMeanTheLastOnesFrom33) {
  for (const int minor : {32, 33}) {
    TestEngine engine(profileOptions("0." + std::to_string(minor)));
    TcpSender sender;
    engine.init(sender);
    const std::vector<Sent> first = {tensor("a", {4}, '1')};
    const std::vector<Sent> second = {tensor("a", {4}, '2')};
    engine.push(sender, first, "1");
    engine.post("start_weight_update");
    auto pending = engine.postLater("update_weights", TcpSender::updateBody({}));
    sender.send(second);
    EXPECT_EQ(pending.get().status, minor == 33 ? 200 : 500);
    const std::string held = sha256(minor == 33 ? second[0].bytes : first[0].bytes);
    EXPECT_EQ(engine.weight("a"), held);
  }
}

}  // namespace
}  // namespace pushrod::engines::reference::testing
