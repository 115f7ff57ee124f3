// SPDX-License-Identifier: Apache-2.0
// The receiving side of the shm wire format. Segments are written here by hand.
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/engines/reference/engine_fixture.h"

namespace pushrod::engines::reference::testing {
namespace {

constexpr const char* kInit = R"({"init_info": {"protocol": 1, "packed": true}})";

/// A segment of this process alone, removed in the end.
class TestSegment {
 public:
  explicit TestSegment(const std::string& content)
      : name_("/pushrod.unit." + std::to_string(::getpid())) {
    fd_ = ::shm_open(name_.c_str(), O_RDWR | O_CREAT, 0600);
    EXPECT_EQ(::pwrite(fd_, content.data(), content.size(), 0),
              static_cast<ssize_t>(content.size()));
  }

  TestSegment(const TestSegment&) = delete;
  TestSegment& operator=(const TestSegment&) = delete;

  ~TestSegment() {
    ::shm_unlink(name_.c_str());
    ::close(fd_);
  }

  /// A segments entry.
  [[nodiscard]] std::string entry(std::size_t offset, std::size_t bytes) const {
    return "{\"name\": \"" + name_ + "\", \"offset\": " + std::to_string(offset) +
           ", \"bytes\": " + std::to_string(bytes) + "}";
  }

 private:
  std::string name_;
  int fd_ = -1;
};

/// An update_weights body whose tensors stand one after the other.
std::string updateBody(const std::vector<Sent>& tensors, const std::string& segments) {
  std::string body = TcpSender::updateBody(tensors);
  std::string sizes;
  for (const Sent& sent : tensors) {
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(sent.bytes.size());
  }
  // Into the update_info object, which closes before the body's own brace.
  const std::size_t end = body.rfind('}', body.rfind('}') - 1);
  return body.insert(end, ", \"tensor_sizes\": [" + sizes + "], \"segments\": {" + segments + "}");
}

class Shm : public ::testing::Test {
 protected:
  static EngineOptions options() {
    EngineOptions options = profileOptions("0.32");
    options.backend = "shm";
    options.hostId = "here";
    return options;
  }

  void open() {
    EXPECT_EQ(engine_.post("init_weight_transfer_engine", kInit).status, 200);
    EXPECT_EQ(engine_.post("start_weight_update").status, 200);
  }

  Answer update(const std::vector<Sent>& tensors, const std::string& segments) {
    return engine_.post("update_weights", updateBody(tensors, segments));
  }

  TestEngine engine_{options()};
  const std::vector<Sent> first_ = {tensor("model.embed_tokens.weight", {4, 8}, 'e')};
  const std::vector<Sent> second_ = {tensor("model.norm.weight", {8}, 'n'),
                                     tensor("model.none.weight", {0, 3}, 'x')};
};

TEST_F(Shm, ChunksAreCopiedOutOfTheOwnHostsSegment) {
  const std::string bytes = first_[0].bytes + second_[0].bytes;
  const TestSegment segment(bytes);
  const std::size_t cut = first_[0].bytes.size();
  open();
  EXPECT_EQ(update(first_,
                   "\"here\": " + segment.entry(0, cut) +
                       ", \"there\": " + R"({"name": "/pushrod.none", "offset": 0, "bytes": )" +
                       std::to_string(cut) + "}")
                .status,
            200);
  EXPECT_EQ(update(second_, "\"here\": " + segment.entry(cut, bytes.size() - cut)).status, 200);
  EXPECT_EQ(engine_.finish("7").status, 200);
  EXPECT_EQ(engine_.weight("model.embed_tokens.weight"), sha256(first_[0].bytes));
  EXPECT_EQ(engine_.weight("model.norm.weight"), sha256(second_[0].bytes));
  EXPECT_EQ(engine_.weight("model.none.weight"), sha256(""));
  EXPECT_EQ(engine_.state("torn"), false);
  EXPECT_TRUE(contains(engine_.get("server_info?config_format=json").body, "pushrod_shm"));
}

TEST_F(Shm, ALayerOfSeveralChunksIsWholeInTheEnd) {
  const std::string base = "model.layers.0.self_attn.";
  const std::vector<Sent> all = {tensor(base + "q_proj.weight", {2, 2}, 'q'),
                                 tensor(base + "k_proj.weight", {2, 2}, 'k'),
                                 tensor(base + "v_proj.weight", {2, 2}, 'v')};
  for (const char* version : {"1", "2"}) {
    open();
    for (const Sent& one : all) {
      const TestSegment segment(one.bytes);
      EXPECT_EQ(update({one}, "\"here\": " + segment.entry(0, one.bytes.size())).status, 200);
    }
    EXPECT_EQ(engine_.finish(version).status, 200);
    EXPECT_EQ(engine_.state("torn"), false) << version;
  }
  // A session that brings one part of it leaves it mixed.
  open();
  const TestSegment segment(all[0].bytes);
  EXPECT_EQ(update({all[0]}, "\"here\": " + segment.entry(0, all[0].bytes.size())).status, 200);
  EXPECT_EQ(engine_.finish("3").status, 200);
  EXPECT_EQ(engine_.state("torn"), true);
}

TEST_F(Shm, AMissingHostIsNamedWithTheOnesOffered) {
  const TestSegment segment(first_[0].bytes);
  const std::string entry = segment.entry(0, first_[0].bytes.size());
  open();
  const Answer answer = update(first_, "\"left\": " + entry + ", \"right\": " + entry);
  EXPECT_EQ(answer.status, 500);
  EXPECT_TRUE(
      contains(answer.error(), "no shared memory segment for host here; offered: left, right"));
  EXPECT_EQ(engine_.state("session"), "closed") << "a failed update ends the session";
}

TEST_F(Shm, WithoutInitAnUpdateIsRefused) {
  const TestSegment segment(first_[0].bytes);
  EXPECT_EQ(engine_.post("start_weight_update").status, 200);
  const Answer answer = update(first_, "\"here\": " + segment.entry(0, first_[0].bytes.size()));
  EXPECT_EQ(answer.status, 500);
  EXPECT_TRUE(contains(answer.error(), "not initialized"));
}

TEST_F(Shm, ASegmentThatIsTooSmallOrNotThereIsAnError) {
  const std::string& bytes = first_[0].bytes;
  const TestSegment segment(bytes);
  const std::string size = std::to_string(bytes.size());
  const std::pair<std::string, std::string> cases[] = {
      {segment.entry(1, bytes.size()), "is said to be " + size + " bytes from 1"},
      {segment.entry(std::size_t{1} << 56U, bytes.size()), "has " + size + " bytes"},
      {R"({"name": "/pushrod.nobody.1", "offset": 0, "bytes": )" + size + "}", "cannot be opened"}};
  for (const auto& [entry, text] : cases) {
    open();
    const Answer answer = update(first_, "\"here\": " + entry);
    EXPECT_EQ(answer.status, 500) << entry;
    EXPECT_TRUE(contains(answer.error(), text));
  }
  // Without bytes the segment must exist all the same.
  open();
  EXPECT_EQ(
      update({second_[1]}, R"("here": {"name": "/pushrod.x", "offset": 0, "bytes": 0})").status,
      500);
  open();
  EXPECT_EQ(update({second_[1]}, "\"here\": " + segment.entry(0, 0)).status, 200);
}

TEST_F(Shm, MalformedUpdatesAreRefused) {
  const std::string size = std::to_string(first_[0].bytes.size());
  const TestSegment segment(first_[0].bytes);
  const std::string good = "\"here\": " + segment.entry(0, first_[0].bytes.size());
  const auto named = [&](const std::string& name) {
    return "\"here\": {\"name\": \"" + name + "\", \"offset\": 0, \"bytes\": " + size + "}";
  };
  const auto replaced = [&](const std::string& what, const std::string& with) {
    std::string body = updateBody(first_, good);
    const std::size_t at = body.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return body.replace(at, what.size(), with);
  };
  const std::pair<std::string, std::string> cases[] = {
      {updateBody(first_, ""), "segments must be a mapping that is not empty"},
      {updateBody(first_, "\"here\": 5"), "must have name, offset and bytes"},
      {updateBody(first_, "\"here\": {}"), "must have name, offset and bytes"},
      {updateBody(first_, "\"here\": {\"name\": \"/pushrod.a\", \"offset\": -1, \"bytes\": 1}"),
       "not negative"},
      {updateBody(first_, "\"here\": " + segment.entry(0, 1)), "the tensors have " + size},
      {updateBody(first_, named("/other.segment")), "none of Pushrod's"},
      {updateBody(first_, named("/pushrod.a/../b")), "none of Pushrod's"},
      {updateBody(first_, named("pushrod.a")), "none of Pushrod's"},
      {replaced("[" + size + "]", "[1]"), "tensor_sizes of model.embed_tokens.weight"},
      {replaced("[" + size + "]", "[]"), "tensor_sizes must be a list"},
      {replaced("[" + size + "]", "7"), "tensor_sizes must be a list"},
      {replaced("\"tensor_sizes\"", "\"sizes\""), "unexpected keyword argument 'sizes'"},
      {replaced(", \"tensor_sizes\": [" + size + "]", ""), "missing 1 required"},
  };
  for (const auto& [body, text] : cases) {
    open();
    const Answer answer = engine_.post("update_weights", body);
    EXPECT_EQ(answer.status, 500) << body;
    EXPECT_TRUE(contains(answer.error(), text));
  }
}

TEST_F(Shm, InitInfoIsChecked) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"packed": true})", "missing 1 required"},
      {R"({"protocol": 2, "packed": true})", "protocol must be 1"},
      {R"({"protocol": 1, "packed": false})", "packed must be true"},
      {R"({"protocol": 1, "packed": 1})", "packed must be true"},
      {R"({"protocol": 1, "packed": true, "channel": "x"})", "'channel'"},
  };
  for (const auto& [info, text] : cases) {
    const Answer answer =
        engine_.post("init_weight_transfer_engine", "{\"init_info\": " + info + "}");
    EXPECT_EQ(answer.status, 500) << info;
    EXPECT_TRUE(contains(answer.error(), text));
  }
}

TEST_F(Shm, ReceiveFaultsAreAboutAChunkOfTheNthSession) {
  engine_.faults(R"([{"route": "update_weights", "nth": 2, "do": "fail_after_chunks",
                      "after_chunks": 1}])");
  const TestSegment segment(first_[0].bytes);
  const std::string entry = "\"here\": " + segment.entry(0, first_[0].bytes.size());
  const auto session = [&] {
    open();
    std::string statuses;
    for (int i = 0; i < 3; ++i) {
      statuses += std::to_string(update(first_, entry).status) + " ";
    }
    engine_.finish("1");
    return statuses;
  };
  EXPECT_EQ(session(), "200 200 200 ");
  EXPECT_EQ(session(), "200 500 500 ");
  EXPECT_EQ(session(), "200 200 200 ");
}

TEST_F(Shm, AWorkerThatReadsNothingEndsWhenTheSegmentIsGone) {
  engine_.faults(R"([{"route": "update_weights", "do": "stop_reading"}])");
  open();
  std::future<Answer> answer;
  {
    const TestSegment segment(first_[0].bytes);
    answer = engine_.postLater(
        "update_weights",
        updateBody(first_, "\"here\": " + segment.entry(0, first_[0].bytes.size())));
    EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  }
  EXPECT_EQ(answer.get().status, 500);
}

TEST(ShmEngine, AnUnknownBackendIsRefused) {
  net::IoExecutor executor;
  EngineOptions options;
  options.backend = "nccl";
  const auto engine = Engine::create(executor, options);
  ASSERT_FALSE(engine.ok());
  EXPECT_TRUE(contains(engine.status().message(), "nccl"));
}

}  // namespace
}  // namespace pushrod::engines::reference::testing
