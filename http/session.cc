// SPDX-License-Identifier: Apache-2.0
#include "http/session.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <sys/socket.h>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/write.hpp>

#include "http/parser.h"

namespace pushrod::http::detail {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr Duration kDrainLimit{1000};
constexpr std::size_t kDrainBytes = 1 << 20;

/// The handle a handler gets. It holds no connection alive, and is harmless when that has gone.
class SessionResponder final : public Responder {
 public:
  SessionResponder(std::weak_ptr<Session> session, std::uint64_t request)
      : session_(std::move(session)), request_(request) {}

  ~SessionResponder() override { act(Action{}); }

  void send(ServerResponse response) override {
    Action action;
    action.kind = Action::Kind::kSend;
    action.response = std::move(response);
    act(std::move(action));
  }

  void sendRaw(std::string bytes, int perSecond) override {
    Action action;
    action.kind = Action::Kind::kRaw;
    action.bytes = std::move(bytes);
    action.perSecond = perSecond;
    act(std::move(action));
  }

  void cut(Cut how) override {
    Action action;
    action.kind = how == Cut::kReset ? Action::Kind::kReset : Action::Kind::kClose;
    act(std::move(action));
  }

 private:
  void act(Action action) noexcept {
    if (const auto session = std::exchange(session_, {}).lock()) {
      session->act(request_, std::move(action));
    }
  }

  std::weak_ptr<Session> session_;
  std::uint64_t request_;
};

std::string responseHead(const ServerResponse& response, bool keep) {
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " " +
                     std::string(reasonPhrase(response.status)) + "\r\n";
  if (!response.contentType.empty()) {
    head += "Content-Type: " + response.contentType + "\r\n";
  }
  if (response.status != 204 && response.status != 304) {
    head += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  }
  if (response.status == 405) {
    head += "Allow: GET, HEAD, POST\r\n";
  }
  head += keep ? "\r\n" : "Connection: close\r\n\r\n";
  return head;
}

}  // namespace

Session::Session(asio::ip::tcp::socket socket,
                 std::shared_ptr<ServerState> state,
                 std::uint64_t number)
    : socket_(std::move(socket)),
      state_(std::move(state)),
      number_(number),
      limit_(socket_.get_executor()),
      event_(socket_.get_executor()) {}

void Session::start() {
  asio::co_spawn(
      socket_.get_executor(),
      [self = shared_from_this()] { return self->run(); },
      [self = shared_from_this()](const std::exception_ptr&) {
        // Memory was short, at worst: this connection ends, the server goes on.
        self->abort();
        self->state_->sessions.erase(self->number_);
      });
}

asio::awaitable<void> Session::run() {
  bool open = true;
  while (open && !gone_ && !state_->closing) {
    auto request = co_await readRequest();
    if (!request || gone_) {
      break;
    }
    handle(std::move(*request));
    if (!action_ && !gone_) {
      co_await waitForAction();
    }
    if (gone_ || !action_) {
      break;
    }
    open = co_await perform(*std::exchange(action_, std::nullopt));
  }
}

asio::awaitable<std::optional<ServerRequest>> Session::readRequest() {
  ParseLimits limits;
  limits.header = state_->options.maxHeader;
  limits.body = state_->options.maxBody;
  RequestParser parser(limits);
  idle_ = input_.view().empty();
  arm(idle_ ? state_->options.idle : state_->options.request);
  input_.consume(parser.feed(input_.view()));
  bool continued = false;
  while (parser.state() == ParseState::kMore) {
    input_.makeRoom();
    const auto [error, bytes] =
        co_await socket_.async_read_some(asio::buffer(input_.space(), input_.room()), kAwait);
    if (error || gone_) {
      co_return std::nullopt;
    }
    if (std::exchange(idle_, false)) {
      arm(state_->options.request);
    }
    input_.commit(bytes);
    input_.consume(parser.feed(input_.view()));
    if (!continued && parser.wantsContinue()) {
      continued = true;
      if (!co_await writeAll("HTTP/1.1 100 Continue\r\n\r\n", "")) {
        co_return std::nullopt;
      }
    }
  }
  idle_ = false;
  disarm();
  if (parser.state() != ParseState::kDone) {
    const bool header = parser.state() == ParseState::kHeaderTooLarge;
    const bool body = parser.state() == ParseState::kBodyTooLarge;
    co_await refuse(header ? 431 : (body ? 413 : 400),
                    "the request was refused: " + parser.error());
    co_return std::nullopt;
  }
  keepAlive_ = parser.keepAlive();
  ServerRequest request = parser.take();
  head_ = request.method == "HEAD";
  if (!head_ && request.method != "GET" && request.method != "POST") {
    co_await refuse(405, "only GET, HEAD and POST are served here");
    co_return std::nullopt;
  }
  request.connection = number_;
  co_return request;
}

asio::awaitable<void> Session::refuse(int status, std::string why) {
  ServerResponse response;
  response.status = status;
  response.contentType = "text/plain; charset=utf-8";
  response.body = std::move(why) + "\n";
  head_ = false;
  co_await sendResponse(response, false);
}

void Session::handle(ServerRequest request) {
  // Own references: the handler may destroy the server.
  const auto handler = state_->handler;
  ++request_;
  action_.reset();
  if (!handler || !*handler) {
    abort();
    return;
  }
  try {
    (*handler)(std::move(request), std::make_unique<SessionResponder>(weak_from_this(), request_));
  } catch (const std::exception&) {
    abort();
  }
}

void Session::act(std::uint64_t request, Action action) noexcept {
  if (request != request_ || action_ || gone_) {
    return;
  }
  try {
    action_ = std::move(action);
    event_.cancel();
  } catch (const std::exception&) {
    abort();  // nothing would wake the session to answer
  }
}

asio::awaitable<void> Session::waitForAction() {
  watchForClose();
  event_.expires_at(TimePoint::max());
  while (!action_ && !gone_) {
    co_await event_.async_wait(kAwait);
  }
  if (!gone_) {
    error_code ignored;
    socket_.cancel(ignored);
  }
}

void Session::watchForClose() {
  socket_.async_wait(
      asio::ip::tcp::socket::wait_read,
      [weak = weak_from_this(), request = request_](const error_code& error) {
        const auto self = weak.lock();
        if (!self || error || self->gone_ || self->request_ != request || self->action_) {
          return;
        }
        char byte = 0;
        const auto got = ::recv(self->socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        // More bytes are the next request, and wait until this one is answered.
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) {
          self->abort();
        }
      });
}

asio::awaitable<bool> Session::perform(Action action) {
  switch (action.kind) {
    case Action::Kind::kSend: {
      const bool keep = keepAlive_ && !action.response.close && !state_->closing;
      co_return co_await sendResponse(action.response, keep);
    }
    case Action::Kind::kRaw:
      if (action.perSecond > 0) {
        co_await trickle(action.bytes, action.perSecond);
      } else {
        arm(state_->options.request);
        co_await writeAll(action.bytes, "");
      }
      co_await drain();
      co_return false;
    case Action::Kind::kReset: {
      error_code ignored;
      socket_.set_option(asio::socket_base::linger(true, 0), ignored);
      co_return false;
    }
    case Action::Kind::kClose:
      break;
  }
  co_return false;
}

asio::awaitable<bool> Session::sendResponse(const ServerResponse& response, bool keep) {
  const std::string head = responseHead(response, keep);
  arm(state_->options.request);
  const bool bodyless = head_ || response.status == 204 || response.status == 304;
  const bool written = co_await writeAll(head, bodyless ? std::string_view() : response.body);
  disarm();
  if (written && !keep) {
    co_await drain();
  }
  co_return written&& keep;
}

asio::awaitable<void> Session::trickle(const std::string& bytes, int perSecond) {
  constexpr int kStepsPerSecond = 20;
  const int step = std::max(1, perSecond / kStepsPerSecond);
  const auto pause = std::chrono::nanoseconds(std::chrono::seconds(1)) * step / perSecond;
  std::string_view rest = bytes;
  while (!rest.empty() && !gone_) {
    const std::string_view now = rest.substr(0, static_cast<std::size_t>(step));
    rest.remove_prefix(now.size());
    arm(state_->options.request);
    if (!co_await writeAll(now, "")) {
      co_return;
    }
    disarm();
    event_.expires_after(pause);
    co_await event_.async_wait(kAwait);
  }
}

asio::awaitable<bool> Session::writeAll(std::string_view first, std::string_view second) {
  if (gone_) {
    co_return false;
  }
  std::array<asio::const_buffer, 2> buffers;
  buffers[0] = asio::buffer(first.data(), first.size());
  buffers[1] = asio::buffer(second.data(), second.size());
  const auto [error, bytes] = co_await asio::async_write(socket_, buffers, kAwait);
  co_return !error && !gone_;
}

asio::awaitable<void> Session::drain() {
  if (gone_) {
    co_return;
  }
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  arm(kDrainLimit);
  std::size_t dropped = 0;
  while (dropped < kDrainBytes && !gone_) {
    input_.consume(input_.view().size());
    input_.makeRoom();
    const auto [error, bytes] =
        co_await socket_.async_read_some(asio::buffer(input_.space(), input_.room()), kAwait);
    if (error) {
      break;
    }
    dropped += bytes;
  }
  disarm();
}

void Session::arm(Duration limit) {
  const std::uint64_t number = ++armed_;
  limit_.expires_after(limit);
  limit_.async_wait([weak = weak_from_this(), number](const error_code& error) {
    const auto self = weak.lock();
    if (!error && self && self->armed_ == number) {
      self->abort();
    }
  });
}

void Session::disarm() {
  ++armed_;
  limit_.cancel();
}

void Session::closeWhenIdle() {
  if (idle_) {
    abort();
  }
}

void Session::abort() noexcept {
  gone_ = true;
  ++armed_;
  try {
    limit_.cancel();
    event_.cancel();
    error_code ignored;
    socket_.close(ignored);
  } catch (const std::exception&) {
    // The connection is given up in any case.
    gone_ = true;
  }
}

}  // namespace pushrod::http::detail
