// SPDX-License-Identifier: Apache-2.0
#include "http/exchange.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include <pushrod/version.h>

#include "http/parser.h"

namespace pushrod::http::detail {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

std::string causeText(const error_code& error, bool answered) {
  if (error == asio::error::eof) {
    return answered ? "the server closed the connection in the middle of its answer"
                    : "the server closed the connection without an answer";
  }
  return "the connection broke" +
         std::string(answered ? " in the middle of the answer: " : " before the answer: ") +
         error.message();
}

bool isToken(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool isTarget(const std::string& text) {
  return !text.empty() && text.front() == '/' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

Exchange::Exchange(asio::io_context& context,
                   std::shared_ptr<Route> route,
                   ExchangeOwner& owner,
                   Client::Id id,
                   Request request,
                   Client::Done done)
    : context_(context),
      route_(std::move(route)),
      owner_(&owner),
      id_(id),
      request_(std::move(request)),
      done_(std::move(done)),
      timer_(context) {}

void Exchange::start(Deadline deadline) {
  if (!isToken(request_.method) || !isTarget(request_.target)) {
    finish(failure(Code::kInvalidArgument, "the method or the target is not valid in HTTP"));
    return;
  }
  if (deadline.when() <= SteadyClock().now()) {
    finish(failure(Code::kDeadlineExceeded, "no time was left to send it"));
    return;
  }
  head_ = headText();
  armDeadline(deadline);
  asio::co_spawn(
      context_,
      [self = shared_from_this(), deadline] { return self->run(deadline); },
      [self = shared_from_this()](const std::exception_ptr& thrown) {
        if (thrown) {
          self->finish(self->failure(Code::kInternal, "an exception ended it"));
        }
      });
}

void Exchange::armDeadline(Deadline deadline) {
  if (deadline.isNever()) {
    return;
  }
  timer_.expires_at(deadline.when());
  timer_.async_wait([weak = weak_from_this()](const error_code& error) {
    if (const auto self = weak.lock(); self && !error) {
      self->finish(self->failure(
          Code::kDeadlineExceeded,
          self->mayHaveArrived_ ? "no complete answer came in time" : "no connection in time"));
    }
  });
}

std::string Exchange::headText() const {
  const Url& url = route_->url;
  const bool absolute = route_->proxy && !url.tls;
  const bool defaultPort = url.port == (url.tls ? "443" : "80");
  const std::string authority = url.authority();
  const std::string host =
      defaultPort ? authority.substr(0, authority.size() - url.port.size() - 1) : authority;
  std::string text;
  text.reserve(256);
  text += request_.method;
  text += ' ';
  if (absolute) {
    text += "http://" + host;
  }
  text += url.prefix;
  text += request_.target;
  text += " HTTP/1.1\r\nHost: ";
  text += host;
  text += "\r\nUser-Agent: pushrod/" PUSHROD_VERSION "\r\nAccept: */*\r\n";
  if (!route_->options.bearerToken.empty()) {
    text += "Authorization: Bearer " + route_->options.bearerToken + "\r\n";
  }
  if (request_.body) {
    text += "Content-Type: application/json\r\nContent-Length: " +
            std::to_string(request_.body->size()) + "\r\n";
  } else if (request_.method == "POST" || request_.method == "PUT") {
    text += "Content-Length: 0\r\n";
  }
  text += "\r\n";
  return text;
}

Status Exchange::failure(Code code, const std::string& text) const {
  const Url& url = route_->url;
  return Status(code,
                request_.method + " " + (url.tls ? "https://" : "http://") + url.authority() +
                    url.prefix + request_.target + " failed: " + text,
                mayHaveArrived_ ? Outcome::kUnknown : Outcome::kNotSent);
}

asio::awaitable<void> Exchange::run(Deadline deadline) {
  if (result_) {
    co_return;
  }
  connection_ = owner_->takeKept(request_.repeat);
  bool kept = connection_ != nullptr;
  while (!result_) {
    if (!kept) {
      connection_ = std::make_shared<Connection>(context_, route_);
      const Status opened = co_await connection_->open(deadline);
      if (result_) {
        co_return;
      }
      if (!opened.ok()) {
        finish(failure(opened.code(), opened.message()));
        co_return;
      }
    }
    if (co_await attempt(kept) == Attempt::kEnded) {
      co_return;
    }
    // Stale: once more, on a connection of its own.
    connection_->close();
    owner_->keptWasClosed();
    kept = false;
  }
}

bool Exchange::maySendAgain(bool kept, std::size_t written) const {
  return kept && (written == 0 || request_.repeat == Repeat::kSafe);
}

asio::awaitable<Exchange::Attempt> Exchange::attempt(bool kept) {
  std::array<asio::const_buffer, 2> buffers;
  buffers[0] = asio::buffer(head_);
  if (request_.body) {
    buffers[1] = asio::buffer(*request_.body);
  }
  const bool before = std::exchange(mayHaveArrived_, true);
  const auto [error, written] = co_await connection_->write(buffers);
  if (result_) {
    co_return Attempt::kEnded;
  }
  if (!error) {
    co_return co_await readAnswer(kept, written, "");
  }
  // TLS may have sent what it does not count.
  if (written == 0 && !route_->url.tls) {
    mayHaveArrived_ = before;
    if (kept) {
      co_return Attempt::kStale;
    }
    finish(failure(Code::kUnavailable, causeText(error, false)));
    co_return Attempt::kEnded;
  }
  // A server that refuses a request early answers and closes before it has read all of it.
  co_return co_await readAnswer(kept, std::max<std::size_t>(written, 1), causeText(error, false));
}

asio::awaitable<Exchange::Attempt> Exchange::readAnswer(bool kept,
                                                        std::size_t written,
                                                        std::string brokenWrite) {
  ParseLimits limits;
  limits.header = route_->options.maxHeader;
  limits.body = route_->options.maxBody;
  ResponseParser parser(limits, request_.method == "HEAD");
  bool answered = false;
  // Held here: whatever ends the request while it waits must not take the connection from under it.
  const std::shared_ptr<Connection> connection = connection_;
  while (parser.state() == ParseState::kMore) {
    const auto [error, bytes] = co_await connection->read();
    if (result_) {
      co_return Attempt::kEnded;
    }
    answered = answered || bytes > 0;
    ReadBuffer& input = connection->input();
    input.consume(parser.feed(input.view()));
    if (error && parser.state() == ParseState::kMore) {
      if (!answered && maySendAgain(kept, written)) {
        co_return Attempt::kStale;
      }
      finish(failure(Code::kUnavailable,
                     brokenWrite.empty() || answered ? causeText(error, answered) : brokenWrite));
      co_return Attempt::kEnded;
    }
  }
  if (parser.foreign()) {
    finish(failure(Code::kFailedPrecondition,
                   "what answers there is no HTTP server; check address, port and, for one with "
                   "certificates, https://"));
    co_return Attempt::kEnded;
  }
  if (parser.state() != ParseState::kDone) {
    finish(failure(Code::kUnavailable, "the answer cannot be used: " + parser.error()));
    co_return Attempt::kEnded;
  }
  if (!connection->input().view().empty()) {
    // Its end is not where it said: what was declared may be a cut.
    finish(
        failure(Code::kUnavailable, "the answer cannot be used: more bytes came than it declared"));
    co_return Attempt::kEnded;
  }
  const bool keep = brokenWrite.empty() && parser.keepAlive() && parser.status() < 500;
  if (keep && owner_ != nullptr) {
    owner_->keep(std::exchange(connection_, nullptr));
  }
  finish(parser.take());
  co_return Attempt::kEnded;
}

void Exchange::cancel(const Status& reason) {
  if (!result_) {
    finish(reason.with(mayHaveArrived_ ? Outcome::kUnknown : Outcome::kNotSent));
  }
}

void Exchange::drop() {
  owner_ = nullptr;
  done_ = nullptr;
  finish(Status(Code::kCancelled, "the client was closed"));
}

void Exchange::finish(Result<Response> result) {
  if (result_) {
    return;
  }
  result_ = std::move(result);
  timer_.cancel();
  if (connection_) {
    connection_->close();
  }
  asio::post(context_, [self = shared_from_this()] { self->deliver(); });
}

void Exchange::deliver() {
  if (owner_ == nullptr) {
    return;
  }
  owner_->forget(id_);
  owner_ = nullptr;
  const Client::Done done = std::move(done_);
  done(std::move(*result_));
}

}  // namespace pushrod::http::detail
