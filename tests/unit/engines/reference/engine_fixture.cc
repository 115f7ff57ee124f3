// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engines/reference/engine_fixture.h"

#include <array>
#include <openssl/sha.h>

#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

namespace pushrod::engines::reference::testing {

TestEngine::TestEngine(const EngineOptions& options) {
  auto engine = Engine::create(executor_, options);
  if (!engine.ok()) {
    ADD_FAILURE() << engine.error().toString();
    std::abort();
  }
  engine_ = std::move(*engine);
}

std::future<Answer> TestEngine::postLater(const std::string& path,
                                          const std::optional<std::string>& body) {
  return std::async(std::launch::async, [port = port(), path, body] {
    return request(port, "POST", "/" + path, body);
  });
}

boost::json::value TestEngine::state(const std::string& field) {
  const auto all = get("__state").json();
  const auto* object = all.if_object();
  const auto* value = object == nullptr ? nullptr : object->if_contains(field);
  return value == nullptr ? boost::json::value() : *value;
}

std::string TestEngine::weight(const std::string& name) {
  const auto weights = state("weights");
  const auto* found = weights.is_object() ? weights.get_object().if_contains(name) : nullptr;
  return found == nullptr ? "absent" : textOf(*found);
}

std::vector<std::string> TestEngine::read(const std::string& attribute) {
  const Answer answer =
      post("collective_rpc", "{\"method\": \"__getattr__\", \"args\": [\"" + attribute + "\"]}");
  if (answer.status != 200) {
    return {answer.error()};
  }
  std::vector<std::string> texts;
  const auto body = answer.json();
  for (const auto& value : body.at("results").as_array()) {
    texts.push_back(textOf(value));
  }
  return texts;
}

void TestEngine::faults(const std::string& rules) {
  const Answer answer = post("__ctl", "{\"faults\": " + rules + "}");
  EXPECT_EQ(answer.status, 200) << answer.body;
}

Answer TestEngine::init(TcpSender& sender, int workers, std::uint64_t buffer) {
  auto answer = postLater("init_weight_transfer_engine", sender.initBody(1 + workers, buffer));
  sender.accept(workers);
  return answer.get();
}

Answer TestEngine::update(TcpSender& sender, const std::vector<Sent>& tensors) {
  auto answer = postLater("update_weights", TcpSender::updateBody(tensors));
  sender.send(tensors);
  return answer.get();
}

Answer TestEngine::finish(const std::string& version) {
  return post("finish_weight_update", "{\"weight_version\": \"" + version + "\"}");
}

void TestEngine::push(TcpSender& sender,
                      const std::vector<Sent>& tensors,
                      const std::string& version) {
  const Answer started = post("start_weight_update", "{}");
  EXPECT_EQ(started.status, 200) << started.body;
  const Answer updated = update(sender, tensors);
  EXPECT_EQ(updated.status, 200) << updated.body;
  const Answer finished = finish(version);
  EXPECT_EQ(finished.status, 200) << finished.body;
}

EngineOptions profileOptions(const std::string& profile, int worldSize) {
  EngineOptions options;
  options.profile = profile;
  options.worldSize = worldSize;
  return options;
}

std::string textOf(const boost::json::value& value) {
  return value.is_string() ? std::string(value.get_string().c_str())
                           : boost::json::serialize(value);
}

std::string sha256(const std::string& text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::string hex;
  for (const unsigned char byte : digest) {
    constexpr const char* kDigits = "0123456789abcdef";
    hex += kDigits[byte >> 4U];
    hex += kDigits[byte & 15U];
  }
  return hex;
}

::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "\"" << text << "\" does not contain \"" << part << "\"";
}

}  // namespace pushrod::engines::reference::testing
