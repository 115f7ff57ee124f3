// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace pushrod::http::test {

/// A blocking socket with bounded waits.
class RawSocket {
 public:
  explicit RawSocket(int descriptor);
  ~RawSocket();
  RawSocket(RawSocket&& other) noexcept;
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  static RawSocket connectTo(std::uint16_t port);

  bool write(std::string_view bytes);
  /// One read; empty at the end, on an error, and after 10 s.
  std::string readSome();
  std::string readToEnd();
  /// A whole request or answer with Content-Length; what was read when it ended before.
  std::string readMessage();
  /// Whether the peer closed, within 10 s; reset() tells how.
  bool closedByPeer();

  [[nodiscard]] bool wasReset() const { return reset_; }

  void resetNow();
  void close();

  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
  bool reset_ = false;
};

/// Accepts connections one after another and runs `script` on each in its own thread of work.
class RawServer {
 public:
  using Script = std::function<void(RawSocket&, int index)>;

  explicit RawServer(Script script, bool v6 = false);
  ~RawServer();
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  [[nodiscard]] int accepted() const { return accepted_; }

 private:
  void run();

  Script script_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> accepted_{0};
  std::thread thread_;
};

/// "HTTP/1.1 200 OK" with a body and its length.
std::string okAnswer(std::string_view body, std::string_view extraHeader = "");

}  // namespace pushrod::http::test
