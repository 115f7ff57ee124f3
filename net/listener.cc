// SPDX-License-Identifier: Apache-2.0
#include "net/listener.h"

#include <chrono>
#include <utility>

#include <boost/asio/ip/tcp.hpp>

#include "net/io_executor.h"
#include "net/stream_impl.h"

namespace pushrod::net {

using boost::asio::ip::tcp;

struct Listener::Impl : std::enable_shared_from_this<Listener::Impl> {
  explicit Impl(IoExecutor& owner) : executor(owner), acceptor(owner.context()) {}

  Status bind(const std::string& address, std::uint16_t wanted);
  void accept();

  IoExecutor& executor;
  tcp::acceptor acceptor;
  OnStream onStream;
  std::uint16_t port = 0;
};

Status Listener::Impl::bind(const std::string& address, std::uint16_t wanted) {
  boost::system::error_code error;
  const auto numeric = boost::asio::ip::make_address(address, error);
  if (error) {
    return Status(Code::kInvalidArgument, "'" + address + "' is not a numeric address");
  }
  const tcp::endpoint endpoint(numeric, wanted);
  acceptor.open(endpoint.protocol(), error);
  if (!error) {
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  }
  if (!error) {
    acceptor.bind(endpoint, error);
  }
  if (!error) {
    acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
  }
  if (error) {
    return Status(Code::kUnavailable,
                  "listening on " + endpointText(endpoint) + " failed: " + error.message());
  }
  port = acceptor.local_endpoint(error).port();
  return Status();
}

void Listener::Impl::accept() {
  acceptor.async_accept(
      [self = shared_from_this()](const boost::system::error_code& error, tcp::socket socket) {
        if (!self->onStream) {
          return;
        }
        if (error) {
          // Out of descriptors, most likely: the connection stays in the backlog.
          constexpr auto kPause = std::chrono::milliseconds(100);
          self->executor.postAt(self->executor.now() + kPause, [self] {
            if (self->onStream) {
              self->accept();
            }
          });
          return;
        }
        // A copy: the handler may destroy the listener.
        const OnStream deliver = self->onStream;
        deliver(std::make_unique<Stream>(std::make_shared<Stream::Impl>(std::move(socket))));
        if (self->onStream) {
          self->accept();
        }
      });
}

Result<std::unique_ptr<Listener>> Listener::open(IoExecutor& executor,
                                                 const std::string& address,
                                                 std::uint16_t port,
                                                 OnStream onStream) {
  auto impl = std::make_shared<Impl>(executor);
  const Status bound = impl->bind(address, port);
  if (!bound) {
    return bound;
  }
  impl->onStream = std::move(onStream);
  impl->accept();
  return std::make_unique<Listener>(std::move(impl));
}

Listener::Listener(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Listener::~Listener() {
  impl_->onStream = nullptr;
  boost::system::error_code ignored;
  impl_->acceptor.close(ignored);
}

std::uint16_t Listener::port() const {
  return impl_->port;
}

}  // namespace pushrod::net
