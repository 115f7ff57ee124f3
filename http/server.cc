// SPDX-License-Identifier: Apache-2.0
#include "http/server.h"

#include <exception>
#include <sys/socket.h>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "http/session.h"

namespace pushrod::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Accepts until closed. Kept alive by its own pending accept; the server object only holds it.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(asio::io_context& context, ServerOptions options, Server::Handler handler)
      : acceptor_(context), retry_(context), state_(std::make_shared<detail::ServerState>()) {
    state_->options = std::move(options);
    state_->handler = std::make_shared<const Server::Handler>(std::move(handler));
  }

  Status bind() {
    const ServerOptions& options = state_->options;
    error_code error;
    const std::string name = options.address == "localhost" ? "127.0.0.1" : options.address;
    const auto address = asio::ip::make_address(name, error);
    if (error) {
      return Status(Code::kInvalidArgument,
                    "cannot listen on \"" + options.address + "\": it is not an IP address");
    }
    const tcp::endpoint endpoint(address, options.port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) {
      acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    }
    if (!error) {
      acceptor_.bind(endpoint, error);
    }
    if (!error) {
      acceptor_.listen(asio::socket_base::max_listen_connections, error);
    }
    if (!error) {
      port_ = acceptor_.local_endpoint(error).port();
    }
    if (error) {
      return Status(Code::kUnavailable,
                    "cannot listen on " + options.address + " port " +
                        std::to_string(options.port) + ": " + error.message() +
                        "; choose another port, or 0 for a free one");
    }
    return {};
  }

  void accept() {
    if (state_->closing) {
      return;
    }
    acceptor_.async_accept(
        [self = shared_from_this()](const error_code& error, tcp::socket socket) {
          if (self->state_->closing) {
            return;
          }
          if (error) {
            self->acceptLater();
            return;
          }
          self->admit(std::move(socket));
          self->accept();
        });
  }

  void close() {
    stopAccepting();
    // A copy: a session that ends leaves the map.
    const auto sessions = state_->sessions;
    for (const auto& [number, session] : sessions) {
      session->closeWhenIdle();
    }
  }

  void abort() noexcept {
    stopAccepting();
    state_->handler = nullptr;
    // Emptied here: an executor that ends first would leave sessions and state to hold each other.
    const auto sessions = std::exchange(state_->sessions, {});
    for (const auto& [number, session] : sessions) {
      session->abort();
    }
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }

  [[nodiscard]] std::size_t connections() const { return state_->sessions.size(); }

 private:
  void stopAccepting() noexcept {
    error_code ignored;
    acceptor_.close(ignored);
    try {
      retry_.cancel();
    } catch (const std::exception&) {
      // It fires once more then, and finds that nothing is accepted any more.
    }
    state_->closing = true;
  }

  /// Descriptors are short: an immediate retry would spin.
  void acceptLater() {
    retry_.expires_after(Duration(100));
    retry_.async_wait([self = shared_from_this()](const error_code&) { self->accept(); });
  }

  void admit(tcp::socket socket) {
    error_code ignored;
    if (state_->sessions.size() >= state_->options.maxConnections) {
      constexpr std::string_view kFull =
          "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
      // A fresh socket's buffer takes it; whether it arrives matters to nobody here.
      [[maybe_unused]] const auto sent =
          ::send(socket.native_handle(), kFull.data(), kFull.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      socket.close(ignored);
      return;
    }
    socket.set_option(tcp::no_delay(true), ignored);
    const std::uint64_t number = nextNumber_++;
    auto session = std::make_shared<detail::Session>(std::move(socket), state_, number);
    state_->sessions.emplace(number, session);
    session->start();
  }

  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  std::shared_ptr<detail::ServerState> state_;
  std::uint64_t nextNumber_ = 1;
  std::uint16_t port_ = 0;
};

class ServerImpl final : public Server {
 public:
  explicit ServerImpl(std::shared_ptr<Listener> listener) : listener_(std::move(listener)) {}

  ~ServerImpl() override { listener_->abort(); }

  [[nodiscard]] std::uint16_t port() const override { return listener_->port(); }

  [[nodiscard]] std::size_t connections() const override { return listener_->connections(); }

  void close() override { listener_->close(); }

 private:
  std::shared_ptr<Listener> listener_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(net::IoExecutor& executor,
                                               ServerOptions options,
                                               Handler handler) {
  try {
    auto listener =
        std::make_shared<Listener>(executor.context(), std::move(options), std::move(handler));
    if (Status status = listener->bind(); !status.ok()) {
      return status;
    }
    asio::post(executor.context(), [listener] { listener->accept(); });
    return std::unique_ptr<Server>(std::make_unique<ServerImpl>(std::move(listener)));
  } catch (const std::exception& thrown) {
    return Status(Code::kInternal, std::string("no HTTP server could be made: ") + thrown.what());
  }
}

}  // namespace pushrod::http
