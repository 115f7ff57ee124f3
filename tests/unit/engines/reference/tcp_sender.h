// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pushrod::engines::reference::testing {

/// A tensor with its bytes.
struct Sent {
  std::string name;
  std::string dtype = "bfloat16";
  std::vector<int> shape;
  std::string bytes;
};

/// A tensor of bfloat16 whose every byte is `fill`.
Sent tensor(const std::string& name, const std::vector<int>& shape, char fill);

/// A hand-written tcp source: listens, takes workers, writes frames as the wire format tells them.
class TcpSender {
 public:
  TcpSender();
  TcpSender(const TcpSender&) = delete;
  TcpSender& operator=(const TcpSender&) = delete;
  ~TcpSender();

  static constexpr const char* kChannel = "00112233445566778899aabbccddeeff";

  [[nodiscard]] std::uint16_t port() const { return port_; }

  /// Takes `count` workers, answering each hello with `answer`. Their hello bytes by rank.
  std::map<std::uint32_t, std::string> accept(int count, std::uint8_t answer = 0);
  /// To every worker.
  void frame(std::uint32_t kind,
             std::uint32_t index,
             std::uint64_t length,
             std::uint64_t digest,
             const std::string& payload);
  void raw(const std::string& bytes);
  /// Everything of an update whose tensors fit one chunk, with a good digest.
  void send(const std::vector<Sent>& tensors);
  /// Closes all connections.
  void drop();
  /// Whether every worker has closed its connection within two seconds.
  bool dropped();

  /// init_info for an engine whose workers start at rank 1.
  [[nodiscard]] std::string initBody(int worldSize, std::uint64_t buffer = 1U << 20U) const;
  static std::string updateBody(const std::vector<Sent>& tensors);

 private:
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::map<std::uint32_t, int> workers_;
};

/// XXH3-64 of a text.
std::uint64_t digestOf(const std::string& bytes);

}  // namespace pushrod::engines::reference::testing
