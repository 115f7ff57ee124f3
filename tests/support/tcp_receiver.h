// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <utility>
#include <vector>
#include <xxhash.h>

#include <pushrod/tensor.h>

namespace pushrod::testing {

/// The members of a tcp `init_info` that a worker needs, read by plain text search.
struct InitInfo {
  std::string address;
  std::uint16_t port = 0;
  std::uint32_t rankOffset = 0;
  std::uint32_t worldSize = 0;
  std::string channel;

  static InitInfo parse(const std::string& text) {
    const auto after = [&](const std::string& key) {
      const std::size_t at = text.find("\"" + key + "\": ");
      return at == std::string::npos ? std::string() : text.substr(at + key.size() + 4);
    };
    const auto quoted = [&](const std::string& key) {
      const std::string rest = after(key);
      return rest.empty() ? rest : rest.substr(1, rest.find('"', 1) - 1);
    };
    const auto number = [&](const std::string& key) {
      return static_cast<std::uint32_t>(std::strtoul(after(key).c_str(), nullptr, 10));
    };
    return {quoted("address"),
            static_cast<std::uint16_t>(number("port")),
            number("rank_offset"),
            number("world_size"),
            quoted("channel")};
  }
};

/// One frame as read; the payload stands in the receiver's buffer.
struct TcpFrame {
  std::uint32_t kind = 0;
  std::uint32_t index = 0;
  std::uint64_t length = 0;
  std::uint64_t xxh3 = 0;
};

/// A worker of the tcp transport with blocking sockets, written from the wire format alone. Every
/// read and write has a limit. Not thread-safe.
class TcpReceiver {
 public:
  explicit TcpReceiver(int fd, std::chrono::milliseconds limit = std::chrono::seconds(10))
      : fd_(fd) {
    timeval wait{};
    wait.tv_sec = limit.count() / 1000;
    wait.tv_usec = (limit.count() % 1000) * 1000;
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
  }

  TcpReceiver(TcpReceiver&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}

  TcpReceiver& operator=(TcpReceiver&& other) noexcept {
    close();
    fd_ = std::exchange(other.fd_, -1);
    buffer_ = std::move(other.buffer_);
    return *this;
  }

  TcpReceiver(const TcpReceiver&) = delete;
  TcpReceiver& operator=(const TcpReceiver&) = delete;

  ~TcpReceiver() { close(); }

  /// Not connected when it fails; hello() then answers -1.
  static TcpReceiver connectTo(const std::string& address,
                               std::uint16_t port,
                               std::chrono::milliseconds limit = std::chrono::seconds(10)) {
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
      return TcpReceiver(-1);
    }
    const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TcpReceiver receiver(fd, limit);
    if (::connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
      receiver.close();
    }
    ::freeaddrinfo(found);
    return receiver;
  }

  static TcpReceiver connectTo(const InitInfo& info) { return connectTo(info.address, info.port); }

  static std::string helloBytes(const std::string& channelHex, std::uint32_t rank) {
    std::string bytes = "PUSHROD1";
    for (std::size_t i = 0; i + 1 < channelHex.size(); i += 2) {
      bytes += static_cast<char>(std::strtoul(channelHex.substr(i, 2).c_str(), nullptr, 16));
    }
    for (unsigned shift = 0; shift < 32; shift += 8) {
      bytes += static_cast<char>((rank >> shift) & 0xffU);
    }
    return bytes + std::string(4, '\0');
  }

  /// Sends a hello; the answer byte, or -1 when the connection ended without one.
  int hello(const std::string& channelHex, std::uint32_t rank) {
    return helloRaw(helloBytes(channelHex, rank));
  }

  int helloRaw(std::string_view bytes) {
    std::uint8_t answer = 0;
    return send(bytes) && readExactly(&answer, 1) ? answer : -1;
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) {
        return false;
      }
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// The next frame, its payload in payload(); nullopt when the connection ended before its end.
  std::optional<TcpFrame> readFrame() {
    unsigned char head[24];
    if (!readExactly(head, sizeof head)) {
      return std::nullopt;
    }
    TcpFrame frame;
    frame.kind = static_cast<std::uint32_t>(number(head, 4));
    frame.index = static_cast<std::uint32_t>(number(head + 4, 4));
    frame.length = number(head + 8, 8);
    frame.xxh3 = number(head + 16, 8);
    if (frame.length > kLargestFrame) {
      return std::nullopt;
    }
    if (frame.length > buffer_.size()) {
      buffer_.resize(frame.length);
    }
    payloadSize_ = frame.length;
    return readExactly(buffer_.data(), frame.length) ? std::optional(frame) : std::nullopt;
  }

  [[nodiscard]] std::string_view payload() const { return {buffer_.data(), payloadSize_}; }

  /// Receives one update as a worker must. Returns the reason of its failure, empty when it is
  /// good. `tensors` then holds the bytes of each.
  std::string receiveUpdate(const Manifest& manifest,
                            std::uint64_t buffer,
                            std::vector<std::string>& tensors) {
    tensors.clear();
    std::size_t next = 0;
    for (std::uint32_t index = 0;; ++index) {
      const auto frame = readFrame();
      if (!frame.has_value()) {
        return "closed";
      }
      if (frame->kind == 3) {
        return frame->length > 4096 ? "abort reason too long" : "abort: " + std::string(payload());
      }
      if (frame->kind != 1 && frame->kind != 2) {
        return "unknown kind";
      }
      if (frame->index != index) {
        return "wrong index";
      }
      if (frame->kind == 2) {
        return endFault(*frame, manifest, next, tensors);
      }
      if (std::string fault = chunkFault(*frame, manifest, buffer, next, tensors); !fault.empty()) {
        return fault;
      }
    }
  }

  /// Reads one update without looking at it; false when it did not end well.
  bool discardUpdate(bool verifyDigest) {
    while (const auto frame = readFrame()) {
      if (frame->kind != 1) {
        return frame->kind == 2;
      }
      if (verifyDigest && frame->xxh3 != XXH3_64bits(buffer_.data(), payloadSize_)) {
        return false;
      }
    }
    return false;
  }

  /// Whether the other side closed the connection, within the limit.
  bool closedByPeer() {
    char byte = 0;
    const ssize_t got = ::recv(fd_, &byte, 1, 0);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
  }

  bool readExactly(void* to, std::size_t size) {
    auto* at = static_cast<char*>(to);
    while (size != 0) {
      const ssize_t got = ::recv(fd_, at, size, 0);
      if (got <= 0) {
        return false;
      }
      at += got;
      size -= static_cast<std::size_t>(got);
    }
    return true;
  }

  void close() {
    if (fd_ >= 0) {
      ::close(fd_);
      fd_ = -1;
    }
  }

  [[nodiscard]] bool connected() const { return fd_ >= 0; }

 private:
  static constexpr std::uint64_t kLargestFrame = std::uint64_t{1} << 36;

  static std::uint64_t number(const unsigned char* bytes, unsigned count) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < count; ++i) {
      value |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
    }
    return value;
  }

  /// What follows the last chunk may only be tensors without bytes.
  static std::string endFault(const TcpFrame& frame,
                              const Manifest& manifest,
                              std::size_t next,
                              std::vector<std::string>& tensors) {
    if (frame.length != 0) {
      return "end with payload";
    }
    for (; next < manifest.tensors.size(); ++next) {
      if (manifest.tensors[next].bytes() != 0) {
        return "early end";
      }
      tensors.emplace_back();
    }
    return {};
  }

  std::string chunkFault(const TcpFrame& frame,
                         const Manifest& manifest,
                         std::uint64_t buffer,
                         std::size_t& next,
                         std::vector<std::string>& tensors) const {
    std::uint64_t sum = 0;
    std::size_t end = next;
    while (end < manifest.tensors.size() && sum <= buffer) {
      sum += manifest.tensors[end++].bytes();
    }
    if (sum == 0 || frame.length != sum) {
      return "wrong length";
    }
    if (frame.xxh3 != 0 && frame.xxh3 != XXH3_64bits(buffer_.data(), payloadSize_)) {
      return "wrong digest";
    }
    std::size_t at = 0;
    for (; next < end; ++next) {
      const auto bytes = static_cast<std::size_t>(manifest.tensors[next].bytes());
      tensors.emplace_back(payload().substr(at, bytes));
      at += bytes;
    }
    return {};
  }

  int fd_ = -1;
  std::vector<char> buffer_;
  std::size_t payloadSize_ = 0;
};

}  // namespace pushrod::testing
