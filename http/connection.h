// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <pushrod/deadline.h>
#include <pushrod/status.h>

#include "http/client.h"
#include "http/read_buffer.h"

namespace pushrod::http::detail {

inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

using IoResult = std::tuple<boost::system::error_code, std::size_t>;

/// Where a client's connections go. Shared by the client and its requests; control thread only.
struct Route {
  Url url;
  std::optional<Url> proxy;
  ClientOptions options;
  std::shared_ptr<boost::asio::ssl::context> tls;  ///< null: plain
  /// The address that answered last is tried first.
  std::optional<boost::asio::ip::tcp::endpoint> lastGood;
};

/// One connection to a server, plain or TLS. Held by shared_ptr; close() ends whatever it does.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::io_context& context, std::shared_ptr<Route> route);

  /// Resolves, connects, and where asked for goes through the proxy and TLS. Every address of the
  /// name is tried, each with a share of the time. A failure has outcome notSent.
  boost::asio::awaitable<Status> open(Deadline deadline);

  boost::asio::awaitable<IoResult> write(std::array<boost::asio::const_buffer, 2> buffers);
  /// Reads some bytes into input().
  boost::asio::awaitable<IoResult> read();

  ReadBuffer& input() { return input_; }

  /// Whether an idle connection is still open, with nothing unasked for in it. Does not block.
  [[nodiscard]] bool quiet();
  void close() noexcept;

 private:
  using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

  boost::asio::awaitable<Status> resolve(const Url& to, Endpoints& endpoints);
  boost::asio::awaitable<Status> connectAny(const Url& to, Endpoints endpoints, Deadline deadline);
  boost::asio::awaitable<boost::system::error_code> connectOne(
      const boost::asio::ip::tcp::endpoint& endpoint, TimePoint limit);
  boost::asio::awaitable<Status> tunnel();
  boost::asio::awaitable<Status> handshake();
  [[nodiscard]] Status closedStatus() const;

  std::shared_ptr<Route> route_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer attempt_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> tls_;
  ReadBuffer input_;
  std::uint64_t attemptNumber_ = 0;
  bool attemptExpired_ = false;
  bool closed_ = false;
};

}  // namespace pushrod::http::detail
