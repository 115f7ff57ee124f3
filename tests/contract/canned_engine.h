// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "http/server.h"
#include "net/io_executor.h"
#include "tests/contract/transcript.h"

namespace pushrod::contract {

/// A server on a real socket that says what a transcript says and nothing else: requests must come
/// in its order and shape. Another request, or one that never came, fails the test.
class CannedEngine {
 public:
  explicit CannedEngine(std::vector<Passage> passages);
  ~CannedEngine();
  CannedEngine(const CannedEngine&) = delete;
  CannedEngine& operator=(const CannedEngine&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  void serve(const http::ServerRequest& request, http::Responder& responder);
  /// Why the request is not the next passage; empty: it is.
  [[nodiscard]] static std::string difference(const Passage& passage,
                                              const http::ServerRequest& request);

  std::mutex mutex_;
  std::vector<Passage> passages_;
  std::size_t next_ = 0;
  std::vector<std::string> surprises_;
  std::uint16_t port_ = 0;
  net::IoExecutor executor_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace pushrod::contract
