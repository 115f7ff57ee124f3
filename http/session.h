// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/read_buffer.h"
#include "http/server.h"

namespace pushrod::http::detail {

class Session;

/// What the sessions of one server share; outlives the server while a session still ends.
struct ServerState {
  ServerOptions options;
  std::shared_ptr<const Server::Handler> handler;  ///< null: the server is gone
  std::map<std::uint64_t, std::shared_ptr<Session>> sessions;
  bool closing = false;
};

/// What a handler decided for one request.
struct Action {
  enum class Kind { kSend, kRaw, kClose, kReset };
  Kind kind = Kind::kClose;
  ServerResponse response;
  std::string bytes;
  int perSecond = 0;
};

/// One connection of a server, from its acceptance to its end. Control thread only.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(boost::asio::ip::tcp::socket socket,
          std::shared_ptr<ServerState> state,
          std::uint64_t number);

  void start();
  /// The handler's decision; only the first for each request counts.
  void act(std::uint64_t request, Action action) noexcept;
  /// No further request: closes at once when none is under way.
  void closeWhenIdle();
  /// Closes at once.
  void abort() noexcept;

 private:
  boost::asio::awaitable<void> run();
  /// The next request; nullopt: the connection is to end (an error was answered where possible).
  boost::asio::awaitable<std::optional<ServerRequest>> readRequest();
  boost::asio::awaitable<void> refuse(int status, std::string why);
  boost::asio::awaitable<void> waitForAction();
  /// Whether the connection may go on.
  boost::asio::awaitable<bool> perform(Action action);
  boost::asio::awaitable<bool> sendResponse(const ServerResponse& response, bool keep);
  boost::asio::awaitable<void> trickle(const std::string& bytes, int perSecond);
  boost::asio::awaitable<bool> writeAll(std::string_view first, std::string_view second);
  /// Lets the last bytes arrive: closing with unread input would make the system drop them.
  boost::asio::awaitable<void> drain();
  void handle(ServerRequest request);
  void watchForClose();
  void arm(Duration limit);
  void disarm();

  boost::asio::ip::tcp::socket socket_;
  std::shared_ptr<ServerState> state_;
  const std::uint64_t number_;
  boost::asio::steady_timer limit_;
  boost::asio::steady_timer event_;  ///< cancelled when an action came or the client left
  ReadBuffer input_;
  std::optional<Action> action_;
  std::uint64_t armed_ = 0;    ///< tells the present limit from earlier ones
  std::uint64_t request_ = 0;  ///< number of the present request
  bool head_ = false;          ///< the present request is a HEAD
  bool keepAlive_ = false;
  bool idle_ = true;
  bool gone_ = false;
};

}  // namespace pushrod::http::detail
