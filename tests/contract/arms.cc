// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/arms.h"

#include <iostream>
#include <utility>

namespace pushrod::contract {

namespace {

class ReferenceArm final : public Engine {
 public:
  ReferenceArm(const std::string& release, int workers) : engine_(release, workers) {}

  [[nodiscard]] std::uint16_t port() const override { return engine_.port(); }

  void faults(const std::string& rules) override { engine_.faults(rules); }

  [[nodiscard]] bool receives() const override { return true; }

 private:
  TestEngine engine_;
};

class TranscriptArm final : public Engine {
 public:
  explicit TranscriptArm(std::vector<Passage> passages) : engine_(std::move(passages)) {}

  [[nodiscard]] std::uint16_t port() const override { return engine_.port(); }

  void faults(const std::string& /*rules*/) override {}

  [[nodiscard]] bool receives() const override { return false; }

 private:
  CannedEngine engine_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Setting& setting) {
  return out << setting.release
             << (setting.arm == Setting::Arm::kReference ? " reference" : " transcript");
}

std::vector<Setting> settings() {
  constexpr std::array<std::pair<const char*, const char*>, 9> kReleases = {{{"0.22.1", "0.22"},
                                                                             {"0.24.0", "0.23"},
                                                                             {"0.25.1", "0.25"},
                                                                             {"0.26.0", "0.26"},
                                                                             {"0.27.1", "0.27"},
                                                                             {"0.29.0", "0.28"},
                                                                             {"0.31.0", "0.30"},
                                                                             {"0.32.0", "0.32"},
                                                                             {"0.33.0", "0.33"}}};
  std::vector<Setting> all;
  for (const auto& [release, profile] : kReleases) {
    all.push_back({release, profile, Setting::Arm::kReference});
    all.push_back({release, profile, Setting::Arm::kTranscript});
  }
  return all;
}

std::string settingName(const ::testing::TestParamInfo<Setting>& info) {
  std::string name = "v" + std::string(info.param.profile) +
                     (info.param.arm == Setting::Arm::kReference ? "_reference" : "_transcript");
  for (char& c : name) {
    c = c == '.' ? '_' : c;
  }
  return name;
}

std::string transcripts() {
  return std::string(PUSHROD_SOURCE_DIR) + "/tests/contract/transcripts";
}

std::unique_ptr<Engine> openEngine(const Setting& setting, const std::string& scene, int workers) {
  if (setting.arm == Setting::Arm::kReference) {
    return std::make_unique<ReferenceArm>(setting.release, workers);
  }
  const auto transcript = Transcript::load(transcripts(), setting.profile);
  if (!transcript.ok()) {
    ADD_FAILURE() << transcript.status().message();
    return nullptr;
  }
  auto passages = transcript->scene(scene);
  if (passages.ok()) {
    return std::make_unique<TranscriptArm>(*std::move(passages));
  }
  if (passages.status().code() == Code::kFailedPrecondition) {
    std::cout << "[ NO BYTES ] " << setting.profile << " " << scene << ": "
              << passages.status().message() << '\n';
  } else {
    ADD_FAILURE() << passages.status().message();
  }
  return nullptr;
}

bool ContractTest::begin(const std::string& scene, int workers) {
  engine_ = openEngine(GetParam(), scene, workers);
  if (engine_ != nullptr) {
    client_ = std::make_unique<BlockingClient>(engine_->port());
  }
  return engine_ != nullptr;
}

void ContractTest::connect() {
  identity_ = client_->connect();
  ASSERT_NE(identity_, nullptr);
  EXPECT_EQ(identity_->release, GetParam().release);
  EXPECT_EQ(identity_->features.profile, GetParam().profile);
}

bool ContractTest::isOpen() {
  const Reply session = run(CallKind::kReadSession);
  EXPECT_TRUE(session.status.ok()) << session.status.message();
  EXPECT_TRUE(session.flag.has_value());
  return session.flag.value_or(false);
}

void ContractTest::expectRefused(const Reply& reply, int httpStatus, const std::string& text) {
  EXPECT_EQ(reply.httpStatus, httpStatus) << reply.status.message();
  EXPECT_EQ(reply.status.outcome(), Outcome::kRejected) << reply.status.message();
  EXPECT_FALSE(reply.status.ok());
  EXPECT_TRUE(has(reply.status.message(), text)) << reply.status.message();
  EXPECT_FALSE(reply.lost);
}

void ContractTest::expectRoute(const Reply& reply, bool exists) {
  if (exists) {
    EXPECT_TRUE(reply.status.ok()) << reply.status.message();
    EXPECT_EQ(reply.httpStatus, 200);
  } else {
    expectRefused(reply, 404, "Not Found");
  }
}

}  // namespace pushrod::contract
