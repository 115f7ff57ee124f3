// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engines/reference/http_probe.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/json/parse.hpp>

namespace pushrod::engines::reference::testing {

namespace json = boost::json;

namespace {

using Time = std::chrono::steady_clock;

bool readable(int fd, Time::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Time::now()).count();
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) > 0;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text;
}

/// Bytes still missing; -1 while the head is not whole.
long missing(Answer& answer) {
  const std::size_t end = answer.raw.find("\r\n\r\n");
  if (end == std::string::npos) {
    return -1;
  }
  answer.headers = lower(answer.raw.substr(0, end + 2));
  answer.body = answer.raw.substr(end + 4);
  answer.status = std::atoi(answer.raw.c_str() + answer.raw.find(' '));
  const std::size_t at = answer.headers.find("content-length: ");
  const long length = at == std::string::npos ? 0 : std::atol(answer.headers.c_str() + at + 16);
  return std::max(0L, length - static_cast<long>(answer.body.size()));
}

}  // namespace

json::value Answer::json() const {
  json::error_code error;
  auto value = json::parse(body, error);
  return error ? json::value("not JSON: " + body) : value;
}

std::string Answer::error() const {
  const json::value value = json();
  const auto* object = value.if_object();
  if (object == nullptr) {
    return body;
  }
  const json::value* error = object->if_contains("error");
  if (error == nullptr) {
    error = object->if_contains("detail");
  }
  if (error != nullptr && error->is_object()) {
    error = error->get_object().if_contains("message");
  }
  return error != nullptr && error->is_string() ? std::string(error->get_string().c_str()) : body;
}

HttpProbe::HttpProbe(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

HttpProbe::~HttpProbe() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

void HttpProbe::send(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t sent = ::send(fd_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (sent <= 0) {
      return;
    }
    done += static_cast<std::size_t>(sent);
  }
}

Answer HttpProbe::read(std::chrono::milliseconds limit) {
  Answer answer;
  const auto until = Time::now() + limit;
  std::array<char, 65536> piece{};
  while (missing(answer) != 0 && fd_ >= 0 && readable(fd_, until)) {
    const ssize_t got = ::recv(fd_, piece.data(), piece.size(), 0);
    if (got <= 0) {
      answer.reset = got < 0 && errno == ECONNRESET;
      break;
    }
    answer.raw.append(piece.data(), static_cast<std::size_t>(got));
  }
  return answer;
}

bool HttpProbe::closed(std::chrono::milliseconds limit) {
  char byte = 0;
  return readable(fd_, Time::now() + limit) && ::recv(fd_, &byte, 1, 0) <= 0;
}

std::string HttpProbe::render(const std::string& method,
                              const std::string& target,
                              const std::optional<std::string>& body,
                              const std::string& contentType) {
  std::string text = method + " " + target + " HTTP/1.1\r\nHost: engine\r\n";
  if (body) {
    text += "Content-Length: " + std::to_string(body->size()) + "\r\n";
    if (!contentType.empty()) {
      text += "Content-Type: " + contentType + "\r\n";
    }
  } else if (method == "POST") {
    text += "Content-Length: 0\r\n";
  }
  return text + "\r\n" + body.value_or("");
}

Answer request(std::uint16_t port,
               const std::string& method,
               const std::string& target,
               const std::optional<std::string>& body,
               const std::string& contentType) {
  HttpProbe probe(port);
  if (!probe.connected()) {
    return {};
  }
  probe.send(HttpProbe::render(method, target, body, contentType));
  return probe.read();
}

}  // namespace pushrod::engines::reference::testing
