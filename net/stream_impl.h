// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>

#include <boost/asio/ip/tcp.hpp>

#include "net/stream.h"

namespace pushrod::net {

/// The socket behind a Stream. Kept alive by its pending operations, so that the Stream may go at
/// any time.
struct Stream::Impl : std::enable_shared_from_this<Stream::Impl> {
  explicit Impl(boost::asio::ip::tcp::socket connected);

  void read();
  void writeNext();
  void fail(const Status& reason);
  void close();

  boost::asio::ip::tcp::socket socket;
  std::string peer;
  Handlers handlers;
  std::deque<std::string> queue;
  std::size_t queued = 0;
  std::array<std::byte, 16384> input{};
  bool closed = false;
};

/// "10.0.0.1:80" or "[::1]:80".
std::string endpointText(const boost::asio::ip::tcp::endpoint& endpoint);

}  // namespace pushrod::net
