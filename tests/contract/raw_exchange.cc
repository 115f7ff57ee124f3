// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/raw_exchange.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>
#include <chrono>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

namespace pushrod::contract {

namespace {

namespace json = boost::json;

constexpr int kAnswerMs = 120000;  ///< a real server's first request takes long
constexpr int kClosedMs = 3000;    ///< for an end that must come

/// A connection that reads with a limit.
class Connection {
 public:
  explicit Connection(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      ADD_FAILURE() << "port " << port << " refuses connections";
    }
  }

  ~Connection() { ::close(socket_); }

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void write(const std::string& text) const {
    const auto sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
    EXPECT_EQ(sent, static_cast<ssize_t>(text.size()));
  }

  /// Appends what comes; false at its end, or when nothing came within `limitMs`.
  bool read(std::string& into, int limitMs) {
    pollfd waited = {socket_, POLLIN, 0};
    if (::poll(&waited, 1, limitMs) <= 0) {
      return false;
    }
    char buffer[4096];
    const auto got = ::recv(socket_, buffer, sizeof(buffer), 0);
    ended_ = got <= 0;
    into.append(buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return !ended_;
  }

  [[nodiscard]] bool ended() const { return ended_; }

 private:
  int socket_;
  bool ended_ = false;
};

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text;
}

std::size_t lengthIn(const std::string& head) {
  constexpr std::string_view kKey = "content-length: ";
  const std::size_t at = lowered(head).find(kKey);
  return at == std::string::npos ? 0 : std::stoul(head.substr(at + kKey.size()));
}

std::string textOf(const std::string& method,
                   const std::string& target,
                   const std::string& body,
                   const std::string& type) {
  std::string text = method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  if (!body.empty() && !type.empty()) {
    text += "Content-Type: " + type + "\r\n";
  }
  if (method != "GET") {
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  return text + "\r\n" + body;
}

/// What a server did not expect ends its connection: the error has the shape of the framework's
/// last resort.
bool closesAfter(const Passage& passage, const json::value& body) {
  const json::value* const error =
      body.is_object() ? body.get_object().if_contains("error") : nullptr;
  return passage.status == 500 && error != nullptr && error->is_object();
}

json::value valueOf(const std::string& text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  return error ? json::value(json::string(text)) : value;
}

}  // namespace

RawAnswer exchange(std::uint16_t port,
                   const std::string& method,
                   const std::string& target,
                   const std::string& body,
                   const std::string& type,
                   int watchMs) {
  RawAnswer answer;
  Connection connection(port);
  connection.write(textOf(method, target, body, type));
  std::string all;
  std::size_t end = std::string::npos;
  while (end == std::string::npos || all.size() < end + 4 + lengthIn(all.substr(0, end))) {
    if (!connection.read(all, kAnswerMs)) {
      return answer;
    }
    end = all.find("\r\n\r\n");
  }
  answer.head = all.substr(0, end);
  answer.body = all.substr(end + 4);
  answer.status = std::stoi(answer.head.substr(answer.head.find(' ') + 1, 3));
  while (connection.read(all, watchMs)) {
  }
  answer.closed = connection.ended();
  return answer;
}

void expectAnswers(std::uint16_t port, const std::vector<Passage>& passages) {
  for (const Passage& passage : passages) {
    SCOPED_TRACE("line " + std::to_string(passage.line) + ": " + passage.method + " " +
                 passage.target);
    const json::value wanted = valueOf(passage.body);
    const bool closes = closesAfter(passage, wanted);
    const RawAnswer answer = exchange(port,
                                      passage.method,
                                      passage.target,
                                      passage.shape.is_null() ? "" : json::serialize(passage.shape),
                                      "application/json",
                                      closes ? kClosedMs : 30);
    EXPECT_EQ(answer.status, passage.status) << answer.body;
    EXPECT_TRUE(fits(wanted, valueOf(answer.body)))
        << "wanted: " << passage.body << "\nanswer: " << answer.body;
    EXPECT_EQ(answer.closed, closes);
  }
}

}  // namespace pushrod::contract
