// SPDX-License-Identifier: Apache-2.0
// The only file that includes Beast: its parsers are used without its streams, which keeps the
// compile time of the others and the cost of a request down.
#include "http/parser.h"

#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace pushrod::http::detail {
namespace {

namespace beast_http = boost::beast::http;

std::uint32_t headerLimit(std::size_t bytes) {
  return static_cast<std::uint32_t>(
      std::min<std::size_t>(bytes, std::numeric_limits<std::uint32_t>::max()));
}

/// What both directions share: one Beast parser, fed and watched.
template <bool kIsRequest>
struct Core {
  using Parser = beast_http::parser<kIsRequest, beast_http::string_body>;

  explicit Core(ParseLimits given) : limits(given) { restart(); }

  void restart() {
    parser.emplace();
    parser->header_limit(headerLimit(limits.header));
    parser->body_limit(limits.body);
    parser->eager(true);
  }

  std::size_t put(std::string_view data) {
    std::size_t used = 0;
    while (state == ParseState::kMore && used < data.size()) {
      boost::beast::error_code code;
      const std::size_t taken =
          parser->put(boost::asio::buffer(data.data() + used, data.size() - used), code);
      used += taken;
      if (code && code != beast_http::error::need_more) {
        fail(code);
      } else if (parser->is_done()) {
        state = ParseState::kDone;
      } else if (code || taken == 0) {
        break;
      }
    }
    // Beast limits the header; lines of a chunked body could still pile up without end.
    if (state == ParseState::kMore && data.size() - used > limits.header) {
      state = ParseState::kHeaderTooLarge;
      error = "its header is larger than " + std::to_string(limits.header) + " bytes";
    }
    return used;
  }

  void fail(const boost::beast::error_code& code) {
    if (code == beast_http::error::header_limit) {
      state = ParseState::kHeaderTooLarge;
      error = "its header is larger than " + std::to_string(limits.header) + " bytes";
    } else if (code == beast_http::error::body_limit ||
               code == beast_http::error::buffer_overflow) {
      state = ParseState::kBodyTooLarge;
      error = "its body is larger than " + std::to_string(limits.body) + " bytes";
    } else {
      state = ParseState::kBad;
      error = "it is not HTTP/1.1 (" + code.message() + ")";
    }
  }

  /// Beast and the standard library may throw when memory is short.
  std::size_t feed(std::string_view data) {
    try {
      return put(data);
    } catch (const std::exception& thrown) {
      state = ParseState::kBad;
      error = std::string("it could not be stored (") + thrown.what() + ")";
      return 0;
    }
  }

  ParseLimits limits;
  std::optional<Parser> parser;
  ParseState state = ParseState::kMore;
  std::string error;
};

std::string textOf(boost::beast::string_view text) {
  return std::string(text.data(), text.size());
}

}  // namespace

struct ResponseParser::Impl : Core<false> {
  Impl(ParseLimits given, bool withoutBody) : Core(given), bodyless(withoutBody) {
    parser->skip(bodyless);
  }

  bool bodyless;
  int interim = 0;
  bool begun = false;  ///< some bytes were taken
  bool foreign = false;
};

ResponseParser::ResponseParser(ParseLimits limits, bool bodyless)
    : impl_(std::make_unique<Impl>(limits, bodyless)) {}

ResponseParser::~ResponseParser() = default;

std::size_t ResponseParser::feed(std::string_view data) {
  constexpr int kMaxInterim = 16;
  constexpr std::string_view kBegin = "HTTP/";
  const bool fits = data.substr(0, kBegin.size()) == kBegin.substr(0, data.size());
  // Beast passes over empty lines before an answer, and waits for the end of a line that is none.
  if (!impl_->begun && !fits && data[0] != '\r' && data[0] != '\n') {
    impl_->foreign = true;
    impl_->state = ParseState::kBad;
    impl_->error = "it is not HTTP/1.1 (it begins otherwise)";
    return 0;
  }
  std::size_t used = impl_->feed(data);
  impl_->begun = impl_->begun || used > 0;
  while (impl_->state == ParseState::kDone && status() / 100 == 1) {
    if (++impl_->interim > kMaxInterim) {
      impl_->state = ParseState::kBad;
      impl_->error = "it is a series of interim answers without an end";
      return used;
    }
    impl_->state = ParseState::kMore;
    impl_->restart();
    impl_->parser->skip(impl_->bodyless);
    used += impl_->feed(data.substr(used));
  }
  if (impl_->state != ParseState::kBad && impl_->parser->is_header_done() && status() < 100) {
    impl_->state = ParseState::kBad;
    impl_->error = "its status " + std::to_string(status()) + " is none";
  }
  if (impl_->state != ParseState::kBad && impl_->parser->is_header_done() &&
      impl_->parser->need_eof()) {
    // It would end with the connection, so that a cut could not be told from its end.
    impl_->state = ParseState::kBad;
    impl_->error = "its length is not declared (status " + std::to_string(status()) + ")";
  }
  return used;
}

ParseState ResponseParser::state() const {
  return impl_->state;
}

const std::string& ResponseParser::error() const {
  return impl_->error;
}

bool ResponseParser::foreign() const {
  return impl_->foreign;
}

int ResponseParser::status() const {
  return impl_->parser->is_header_done() ? static_cast<int>(impl_->parser->get().result_int()) : 0;
}

bool ResponseParser::keepAlive() const {
  return impl_->parser->keep_alive();
}

Response ResponseParser::take() {
  auto message = impl_->parser->release();
  Response response;
  response.status = static_cast<int>(message.result_int());
  response.contentType = textOf(message[beast_http::field::content_type]);
  response.body = std::move(message.body());
  return response;
}

struct RequestParser::Impl : Core<true> {
  using Core::Core;
};

RequestParser::RequestParser(ParseLimits limits) : impl_(std::make_unique<Impl>(limits)) {}

RequestParser::~RequestParser() = default;

std::size_t RequestParser::feed(std::string_view data) {
  return impl_->feed(data);
}

ParseState RequestParser::state() const {
  return impl_->state;
}

const std::string& RequestParser::error() const {
  return impl_->error;
}

bool RequestParser::keepAlive() const {
  constexpr unsigned kVersion = 11;
  return impl_->parser->get().version() >= kVersion && impl_->parser->keep_alive();
}

bool RequestParser::wantsContinue() const {
  return impl_->state == ParseState::kMore && impl_->parser->is_header_done() &&
         boost::beast::iequals(impl_->parser->get()[beast_http::field::expect], "100-continue");
}

ServerRequest RequestParser::take() {
  auto message = impl_->parser->release();
  ServerRequest request;
  request.method = textOf(message.method_string());
  const std::string target = textOf(message.target());
  const auto question = target.find('?');
  request.path = target.substr(0, question);
  request.query = question == std::string::npos ? "" : target.substr(question + 1);
  request.contentType = textOf(message[beast_http::field::content_type]);
  request.host = textOf(message[beast_http::field::host]);
  request.authorization = textOf(message[beast_http::field::authorization]);
  request.body = std::move(message.body());
  return request;
}

std::string_view reasonPhrase(int status) {
  const auto text = beast_http::obsolete_reason(static_cast<beast_http::status>(status));
  return {text.data(), text.size()};
}

}  // namespace pushrod::http::detail
