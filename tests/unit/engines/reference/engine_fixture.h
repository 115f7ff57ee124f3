// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>
#include <memory>
#include <string>
#include <vector>

#include <boost/json/value.hpp>
#include <gtest/gtest.h>

#include "engines/reference/engine.h"
#include "net/io_executor.h"
#include "tests/unit/engines/reference/http_probe.h"
#include "tests/unit/engines/reference/tcp_sender.h"

namespace pushrod::engines::reference::testing {

/// An engine in this process, spoken to over its socket.
class TestEngine {
 public:
  explicit TestEngine(const EngineOptions& options = {});

  [[nodiscard]] std::uint16_t port() const { return engine_->port(); }

  Answer get(const std::string& path) { return request(port(), "GET", "/" + path); }

  Answer post(const std::string& path,
              const std::optional<std::string>& body = std::nullopt,
              const std::string& contentType = "application/json") {
    return request(port(), "POST", "/" + path, body, contentType);
  }

  /// A post whose answer is awaited later.
  std::future<Answer> postLater(const std::string& path,
                                const std::optional<std::string>& body = std::nullopt);

  /// A field of /__state.
  boost::json::value state(const std::string& field);
  /// A tensor's digest in /__state.
  std::string weight(const std::string& name);
  /// The texts of a /collective_rpc read.
  std::vector<std::string> read(const std::string& attribute);
  /// Replaces the faults; `rules` is a JSON array.
  void faults(const std::string& rules);
  /// Init against `sender`, whose workers are accepted.
  Answer init(TcpSender& sender, int workers = 1, std::uint64_t buffer = 1U << 20U);
  /// One update with its whole stream.
  Answer update(TcpSender& sender, const std::vector<Sent>& tensors);
  Answer finish(const std::string& version);
  /// Start, update, finish; expects three good answers.
  void push(TcpSender& sender, const std::vector<Sent>& tensors, const std::string& version);

 private:
  net::IoExecutor executor_;
  std::unique_ptr<Engine> engine_;
};

EngineOptions profileOptions(const std::string& profile, int worldSize = 1);

/// A JSON string's text, or the serialized value.
std::string textOf(const boost::json::value& value);

/// SHA-256 of a text, computed by OpenSSL's one-shot call.
std::string sha256(const std::string& text);

/// Whether a text contains another, with both in the failure message.
::testing::AssertionResult contains(const std::string& text, const std::string& part);

}  // namespace pushrod::engines::reference::testing
