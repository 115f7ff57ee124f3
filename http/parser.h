// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "http/client.h"
#include "http/server.h"

namespace pushrod::http::detail {

enum class ParseState { kMore, kDone, kBad, kHeaderTooLarge, kBodyTooLarge };

struct ParseLimits {
  std::size_t header = 64 << 10;
  std::size_t body = 64 << 20;
};

/// Understands one answer, without any input or output of its own. Interim (1xx) answers are
/// skipped.
class ResponseParser {
 public:
  /// `bodyless`: the answer to HEAD or CONNECT, which has no body whatever its header says.
  ResponseParser(ParseLimits limits, bool bodyless);
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  /// Takes bytes from the front of `data`, and returns how many. What is not taken must be given
  /// again, with more behind it.
  std::size_t feed(std::string_view data);
  [[nodiscard]] ParseState state() const;
  /// Why the state is none of kMore and kDone.
  [[nodiscard]] const std::string& error() const;
  /// The state is kBad from the first bytes on: no HTTP server says these.
  [[nodiscard]] bool foreign() const;
  /// 0 until the header is there.
  [[nodiscard]] int status() const;
  [[nodiscard]] bool keepAlive() const;
  /// The answer, once, after kDone.
  Response take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Understands one request; otherwise as ResponseParser.
class RequestParser {
 public:
  explicit RequestParser(ParseLimits limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  std::size_t feed(std::string_view data);
  [[nodiscard]] ParseState state() const;
  [[nodiscard]] const std::string& error() const;
  [[nodiscard]] bool keepAlive() const;
  /// The header is there, the body is not, and the client waits for "100 Continue".
  [[nodiscard]] bool wantsContinue() const;
  ServerRequest take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// "Not Found" for 404.
[[nodiscard]] std::string_view reasonPhrase(int status);

}  // namespace pushrod::http::detail
