// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/http/raw_peer.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdlib>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <utility>

namespace pushrod::http::test {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

RawSocket::RawSocket(int descriptor) : descriptor_(descriptor) {
  timeval limit{};
  limit.tv_sec = 10;
  ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

RawSocket::RawSocket(RawSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), reset_(other.reset_) {}

RawSocket::~RawSocket() {
  close();
}

RawSocket RawSocket::connectTo(std::uint16_t port) {
  RawSocket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  if (::connect(socket.descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
      0) {
    socket.close();
  }
  return socket;
}

bool RawSocket::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string RawSocket::readSome() {
  std::string bytes(16384, '\0');
  const ssize_t got = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
  reset_ = got < 0 && errno == ECONNRESET;
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

std::string RawSocket::readToEnd() {
  std::string all;
  for (std::string some = readSome(); !some.empty(); some = readSome()) {
    all += some;
  }
  return all;
}

std::string RawSocket::readMessage() {
  std::string all;
  for (;;) {
    const auto end = all.find("\r\n\r\n");
    if (end != std::string::npos) {
      const auto length = all.find("Content-Length: ");
      const std::size_t body =
          length < end ? static_cast<std::size_t>(std::atoll(all.c_str() + length + 16)) : 0;
      if (all.size() >= end + 4 + body) {
        return all;
      }
    }
    const std::string some = readSome();
    if (some.empty()) {
      return all;
    }
    all += some;
  }
}

bool RawSocket::closedByPeer() {
  char byte = 0;
  ssize_t got = 0;
  do {
    got = ::recv(descriptor_, &byte, 1, 0);
  } while (got > 0);
  reset_ = got < 0 && errno == ECONNRESET;
  return got == 0 || reset_;
}

void RawSocket::resetNow() {
  const linger now{1, 0};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

void RawSocket::close() {
  if (descriptor_ >= 0) {
    ::close(std::exchange(descriptor_, -1));
  }
}

RawServer::RawServer(Script script, bool v6) : script_(std::move(script)) {
  listener_ = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (v6) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    socklen_t size = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin6_port);
  } else {
    sockaddr_in address = loopback(0);
    ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    socklen_t size = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ::listen(listener_, 64);
  thread_ = std::thread([this] { run(); });
}

RawServer::~RawServer() {
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
}

void RawServer::run() {
  for (;;) {
    const int descriptor = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor < 0) {
      return;
    }
    RawSocket socket(descriptor);
    const int index = accepted_++;
    script_(socket, index);
  }
}

std::string okAnswer(std::string_view body, std::string_view extraHeader) {
  return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + std::string(extraHeader) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

}  // namespace pushrod::http::test
