// SPDX-License-Identifier: Apache-2.0
#include "net/stream.h"

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "net/io_executor.h"
#include "net/stream_impl.h"

namespace pushrod::net {

namespace asio = boost::asio;
using asio::ip::tcp;

std::string endpointText(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" +
         std::to_string(endpoint.port());
}

Stream::Impl::Impl(tcp::socket connected) : socket(std::move(connected)) {
  boost::system::error_code error;
  socket.set_option(tcp::no_delay(true), error);
  const auto endpoint = socket.remote_endpoint(error);
  peer = error ? "unknown" : endpointText(endpoint);
}

void Stream::Impl::read() {
  socket.async_read_some(
      asio::buffer(input.data(), input.size()),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t count) {
        if (self->closed) {
          return;
        }
        if (error) {
          self->fail(Status(Code::kUnavailable,
                            "connection with " + self->peer +
                                (error == asio::error::eof ? " closed by the other side"
                                                           : " failed: " + error.message())));
          return;
        }
        // A copy: the handler may destroy the stream and with it the functions.
        const auto onData = self->handlers.onData;
        onData(std::span<const std::byte>(self->input.data(), count));
        if (!self->closed) {
          self->read();
        }
      });
}

void Stream::Impl::writeNext() {
  asio::async_write(
      socket,
      asio::buffer(queue.front()),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
        if (self->closed) {
          return;
        }
        if (error) {
          self->fail(Status(Code::kUnavailable,
                            "writing to " + self->peer + " failed: " + error.message()));
          return;
        }
        self->queued -= self->queue.front().size();
        self->queue.pop_front();
        if (!self->queue.empty()) {
          self->writeNext();
        }
      });
}

void Stream::Impl::fail(const Status& reason) {
  const auto onClosed = handlers.onClosed;
  close();
  if (onClosed) {
    onClosed(reason);
  }
}

void Stream::Impl::close() {
  closed = true;
  handlers = {};
  boost::system::error_code ignored;
  socket.close(ignored);
}

namespace {

using Done = std::function<void(Result<std::unique_ptr<Stream>>)>;

/// One connect. The first of answer and limit calls `done`.
struct Attempt {
  explicit Attempt(IoExecutor& executor) : socket(executor.context()) {}

  void finish(Result<std::unique_ptr<Stream>> result) {
    if (done) {
      std::exchange(done, nullptr)(std::move(result));
    }
  }

  tcp::socket socket;
  Done done;
};

void connectNow(IoExecutor& executor, const tcp::endpoint& endpoint, Deadline deadline, Done done) {
  auto attempt = std::make_shared<Attempt>(executor);
  attempt->done = std::move(done);
  const std::string where = endpointText(endpoint);
  const Executor::TimerId timer = executor.postAt(deadline.when(), [attempt, where] {
    boost::system::error_code ignored;
    attempt->socket.close(ignored);
    attempt->finish(Status(Code::kDeadlineExceeded, "connecting to " + where + " took too long"));
  });
  attempt->socket.async_connect(
      endpoint, [attempt, where, timer, &executor](const boost::system::error_code& error) {
        executor.cancel(timer);
        if (error) {
          attempt->finish(
              Status(Code::kUnavailable, "connecting to " + where + " failed: " + error.message()));
          return;
        }
        attempt->finish(
            std::make_unique<Stream>(std::make_shared<Stream::Impl>(std::move(attempt->socket))));
      });
}

}  // namespace

void Stream::connect(IoExecutor& executor,
                     const std::string& address,
                     std::uint16_t port,
                     Deadline deadline,
                     Done done) {
  executor.post([&executor, address, port, deadline, done = std::move(done)]() mutable {
    boost::system::error_code error;
    const auto numeric = asio::ip::make_address(address, error);
    if (error) {
      done(Status(Code::kInvalidArgument, "'" + address + "' is not a numeric address"));
      return;
    }
    connectNow(executor, tcp::endpoint(numeric, port), deadline, std::move(done));
  });
}

Stream::Stream(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Stream::~Stream() {
  impl_->close();
}

void Stream::start(Handlers handlers) {
  if (impl_->closed) {
    return;
  }
  impl_->handlers = std::move(handlers);
  impl_->read();
}

void Stream::write(std::string bytes) {
  if (impl_->closed || bytes.empty()) {
    return;
  }
  impl_->queued += bytes.size();
  if (impl_->queued > kMaxQueued) {
    impl_->queued -= bytes.size();
    asio::post(impl_->socket.get_executor(), [impl = impl_] {
      if (!impl->closed) {
        impl->fail(Status(Code::kUnavailable, impl->peer + " does not take its bytes"));
      }
    });
    return;
  }
  impl_->queue.push_back(std::move(bytes));
  if (impl_->queue.size() == 1) {
    impl_->writeNext();
  }
}

void Stream::close() {
  impl_->close();
}

const std::string& Stream::peer() const {
  return impl_->peer;
}

}  // namespace pushrod::net
