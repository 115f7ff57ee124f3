// SPDX-License-Identifier: Apache-2.0
#include "http/connection.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <sys/socket.h>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/write.hpp>

#include "http/parser.h"

namespace pushrod::http::detail {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::size_t kMaxAddresses = 16;
/// While other addresses are untried, none gets longer than this: one lost SYN and its repeat.
constexpr Duration kFirstTry{2000};

std::string endpointText(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" +
         std::to_string(endpoint.port());
}

Status unavailable(std::string text) {
  return Status(Code::kUnavailable, std::move(text), Outcome::kNotSent);
}

TimePoint shareOf(Deadline deadline, std::size_t left, bool firstRound, bool single) {
  if (single) {
    return deadline.when();
  }
  const SteadyClock clock;
  const Duration share = deadline.remaining(clock) / static_cast<Duration::rep>(left);
  return clock.now() + (firstRound ? std::min(share, kFirstTry) : share);
}

}  // namespace

Connection::Connection(asio::io_context& context, std::shared_ptr<Route> route)
    : route_(std::move(route)), resolver_(context), socket_(context), attempt_(context) {}

Status Connection::closedStatus() const {
  return Status(Code::kCancelled, "the connection was closed on our side", Outcome::kNotSent);
}

asio::awaitable<Status> Connection::open(Deadline deadline) {
  const Url& to = route_->proxy ? *route_->proxy : route_->url;
  Endpoints endpoints;
  Status status = co_await resolve(to, endpoints);
  if (status.ok()) {
    status = co_await connectAny(to, std::move(endpoints), deadline);
  }
  if (status.ok() && route_->url.tls && route_->proxy) {
    status = co_await tunnel();
  }
  if (status.ok() && route_->url.tls) {
    status = co_await handshake();
  }
  co_return status;
}

asio::awaitable<Status> Connection::resolve(const Url& to, Endpoints& endpoints) {
  error_code error;
  const auto literal = asio::ip::make_address(to.host, error);
  if (!error) {
    endpoints.emplace_back(literal, static_cast<unsigned short>(std::stoul(to.port)));
    co_return Status();
  }
  auto [failed, results] =
      co_await resolver_.async_resolve(to.host, to.port, tcp::resolver::numeric_service, kAwait);
  if (closed_) {
    co_return closedStatus();
  }
  if (failed) {
    co_return unavailable("the name " + to.host + " cannot be resolved: " + failed.message());
  }
  for (const auto& entry : results) {
    if (endpoints.size() < kMaxAddresses) {
      endpoints.push_back(entry.endpoint());
    }
  }
  if (route_->lastGood) {
    const auto good = std::find(endpoints.begin(), endpoints.end(), *route_->lastGood);
    if (good != endpoints.end()) {
      std::rotate(endpoints.begin(), good, good + 1);
    }
  }
  co_return Status();
}

asio::awaitable<Status> Connection::connectAny(const Url& to,
                                               Endpoints endpoints,
                                               Deadline deadline) {
  std::string reasons;
  // Those that only were too slow for their share get the rest of the time in a second round.
  for (const bool firstRound : {true, false}) {
    Endpoints slow;
    const bool single = endpoints.size() == 1;
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      const TimePoint limit = shareOf(deadline, endpoints.size() - i, firstRound, single);
      const error_code error = co_await connectOne(endpoints[i], limit);
      if (closed_) {
        co_return closedStatus();
      }
      if (!error) {
        route_->lastGood = endpoints[i];
        co_return Status();
      }
      if (error == asio::error::timed_out && firstRound && !single) {
        slow.push_back(endpoints[i]);
      }
      reasons +=
          (reasons.empty() ? "" : ", ") + endpointText(endpoints[i]) + ": " + error.message();
    }
    if (slow.empty()) {
      break;
    }
    endpoints = std::move(slow);
  }
  co_return unavailable("no connection to " + to.authority() + " (" + reasons + ")");
}

asio::awaitable<error_code> Connection::connectOne(const tcp::endpoint& endpoint, TimePoint limit) {
  error_code ignored;
  socket_.close(ignored);
  const std::uint64_t number = ++attemptNumber_;
  attemptExpired_ = false;
  if (limit != TimePoint::max()) {
    attempt_.expires_at(limit);
    attempt_.async_wait([weak = weak_from_this(), number](const error_code& error) {
      const auto self = weak.lock();
      // A wait that ended while it was being cancelled must not touch what came after it.
      if (!error && self && self->attemptNumber_ == number) {
        self->attemptExpired_ = true;
        error_code closing;
        self->socket_.close(closing);
      }
    });
  }
  auto [error] = co_await socket_.async_connect(endpoint, kAwait);
  ++attemptNumber_;
  attempt_.cancel();
  if (attemptExpired_) {
    co_return error_code(asio::error::timed_out);
  }
  if (!error) {
    socket_.set_option(tcp::no_delay(true), ignored);
  }
  co_return error;
}

asio::awaitable<Status> Connection::tunnel() {
  const std::string target = route_->url.authority();
  const std::string request = "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n";
  std::array<asio::const_buffer, 2> buffers;
  buffers[0] = asio::buffer(request);
  ParseLimits limits;
  limits.header = route_->options.maxHeader;
  limits.body = 0;
  ResponseParser parser(limits, true);
  auto [error, written] = co_await write(buffers);
  while (!error && !closed_ && parser.state() == ParseState::kMore) {
    std::tie(error, written) = co_await read();
    input_.consume(parser.feed(input_.view()));
  }
  if (closed_) {
    co_return closedStatus();
  }
  const std::string where = "the proxy " + route_->proxy->authority();
  if (parser.state() == ParseState::kMore) {
    co_return unavailable(where + " did not answer CONNECT: " + error.message());
  }
  if (parser.state() != ParseState::kDone) {
    co_return unavailable(where + " gave an unusable answer: " + parser.error());
  }
  if (parser.status() / 100 != 2 || !input_.view().empty()) {
    co_return unavailable(where + " refused a connection to " + target + " with status " +
                          std::to_string(parser.status()));
  }
  co_return Status();
}

asio::awaitable<Status> Connection::handshake() {
  tls_.emplace(socket_, *route_->tls);
  const std::string& host = route_->url.host;
  error_code literal;
  asio::ip::make_address(host, literal);
  if (literal) {
    // Servers choose their certificate by it; addresses are not allowed there.
    SSL_set_tlsext_host_name(tls_->native_handle(), host.c_str());
  }
  error_code error;
  if (route_->options.verifyTls) {
    tls_->set_verify_callback(asio::ssl::host_name_verification(host), error);
  }
  if (!error) {
    std::tie(error) = co_await tls_->async_handshake(asio::ssl::stream_base::client, kAwait);
  }
  if (closed_) {
    co_return closedStatus();
  }
  if (!error) {
    co_return Status();
  }
  std::string text =
      "the TLS handshake with " + route_->url.authority() + " failed: " + error.message();
  if (const long verdict = SSL_get_verify_result(tls_->native_handle()); verdict != X509_V_OK) {
    text += std::string(" (") + X509_verify_cert_error_string(verdict) + ")";
  }
  co_return unavailable(text);
}

asio::awaitable<IoResult> Connection::write(std::array<asio::const_buffer, 2> buffers) {
  return tls_ ? asio::async_write(*tls_, buffers, kAwait)
              : asio::async_write(socket_, buffers, kAwait);
}

asio::awaitable<IoResult> Connection::read() {
  input_.makeRoom();
  const asio::mutable_buffer space(input_.space(), input_.room());
  auto [error, bytes] = tls_ ? co_await tls_->async_read_some(space, kAwait)
                             : co_await socket_.async_read_some(space, kAwait);
  input_.commit(bytes);
  co_return IoResult(error, bytes);
}

bool Connection::quiet() {
  if (closed_ || !input_.view().empty()) {
    return false;
  }
  char byte = 0;
  const ssize_t got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void Connection::close() noexcept {
  closed_ = true;
  try {
    resolver_.cancel();
    attempt_.cancel();
    error_code ignored;
    socket_.close(ignored);
  } catch (const std::exception&) {
    // Nothing is left to do for a connection that is given up anyway.
    closed_ = true;
  }
}

}  // namespace pushrod::http::detail
