// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engines/reference/tcp_sender.h"

#include <arpa/inet.h>
#include <array>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xxhash.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

namespace pushrod::engines::reference::testing {

namespace json = boost::json;

namespace {

constexpr int kLimitMs = 5000;

bool readable(int fd, int limitMs) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, limitMs) > 0;
}

template <typename T>
void put(std::string& text, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    text += static_cast<char>((value >> (8 * i)) & 255U);
  }
}

bool readExactly(int fd, std::string& into, std::size_t bytes) {
  std::array<char, 64> piece{};
  while (into.size() < bytes && readable(fd, kLimitMs)) {
    const ssize_t got = ::recv(fd, piece.data(), bytes - into.size(), 0);
    if (got <= 0) {
      return false;
    }
    into.append(piece.data(), static_cast<std::size_t>(got));
  }
  return into.size() == bytes;
}

}  // namespace

Sent tensor(const std::string& name, const std::vector<int>& shape, char fill) {
  std::size_t elements = 1;
  for (const int extent : shape) {
    elements *= static_cast<std::size_t>(extent);
  }
  return {name, "bfloat16", shape, std::string(elements * 2, fill)};
}

std::uint64_t digestOf(const std::string& bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

TcpSender::TcpSender() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(listener_, 16), 0);
  socklen_t length = sizeof address;
  ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
  port_ = ntohs(address.sin_port);
}

TcpSender::~TcpSender() {
  drop();
  ::close(listener_);
}

std::map<std::uint32_t, std::string> TcpSender::accept(int count, std::uint8_t answer) {
  std::map<std::uint32_t, std::string> hellos;
  for (int i = 0; i < count; ++i) {
    if (!readable(listener_, kLimitMs)) {
      ADD_FAILURE() << "no worker came";
      return hellos;
    }
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    std::string hello;
    if (!readExactly(fd, hello, 32)) {
      ADD_FAILURE() << "no whole hello";
      ::close(fd);
      continue;
    }
    std::uint32_t rank = 0;
    for (std::size_t byte = 0; byte < 4; ++byte) {
      rank |= std::uint32_t{static_cast<unsigned char>(hello[24 + byte])} << (8 * byte);
    }
    hellos[rank] = hello;
    ::send(fd, &answer, 1, MSG_NOSIGNAL);
    if (answer != 0) {
      ::close(fd);
      continue;
    }
    if (const auto old = workers_.find(rank); old != workers_.end()) {
      ::close(old->second);
    }
    workers_[rank] = fd;
  }
  return hellos;
}

void TcpSender::raw(const std::string& bytes) {
  for (const auto& [rank, fd] : workers_) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t sent = ::send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (sent <= 0) {
        break;
      }
      done += static_cast<std::size_t>(sent);
    }
  }
}

void TcpSender::frame(std::uint32_t kind,
                      std::uint32_t index,
                      std::uint64_t length,
                      std::uint64_t digest,
                      const std::string& payload) {
  std::string bytes;
  put(bytes, kind);
  put(bytes, index);
  put(bytes, length);
  put(bytes, digest);
  raw(bytes + payload);
}

void TcpSender::send(const std::vector<Sent>& tensors) {
  std::string all;
  for (const Sent& sent : tensors) {
    all += sent.bytes;
  }
  if (!all.empty()) {
    frame(1, 0, all.size(), digestOf(all), all);
  }
  frame(2, all.empty() ? 0 : 1, 0, 0, "");
}

void TcpSender::drop() {
  for (const auto& [rank, fd] : workers_) {
    ::close(fd);
  }
  workers_.clear();
}

bool TcpSender::dropped() {
  for (const auto& [rank, fd] : workers_) {
    char byte = 0;
    if (!readable(fd, 2000) || ::recv(fd, &byte, 1, 0) > 0) {
      return false;
    }
  }
  return true;
}

std::string TcpSender::initBody(int worldSize, std::uint64_t buffer) const {
  const json::object info = {
      {"protocol", 1},
      {"sources", json::array{json::object{{"src", 0}, {"address", "127.0.0.1"}, {"port", port_}}}},
      {"rank_offset", 1},
      {"world_size", worldSize},
      {"channel", kChannel},
      {"packed_buffer_size_bytes", buffer},
      {"packed_num_buffers", 2}};
  return json::serialize(json::object{{"init_info", info}});
}

std::string TcpSender::updateBody(const std::vector<Sent>& tensors) {
  json::array names;
  json::array dtypes;
  json::array shapes;
  for (const Sent& sent : tensors) {
    names.emplace_back(sent.name);
    dtypes.emplace_back(sent.dtype);
    shapes.emplace_back(json::array(sent.shape.begin(), sent.shape.end()));
  }
  return json::serialize(
      json::object{{"update_info",
                    json::object{{"names", names}, {"dtype_names", dtypes}, {"shapes", shapes}}}});
}

}  // namespace pushrod::engines::reference::testing
