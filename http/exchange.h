// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "http/client.h"
#include "http/connection.h"

namespace pushrod::http::detail {

/// What a request asks of its client. Outlives no request: a client that goes drops them first.
class ExchangeOwner {
 public:
  ExchangeOwner() = default;
  ExchangeOwner(const ExchangeOwner&) = delete;
  ExchangeOwner& operator=(const ExchangeOwner&) = delete;
  virtual ~ExchangeOwner() = default;

  /// A kept connection that looks alive, or null.
  virtual std::shared_ptr<Connection> takeKept(Repeat repeat) = 0;
  virtual void keep(std::shared_ptr<Connection> connection) = 0;
  /// A kept connection was closed under us although it was young.
  virtual void keptWasClosed() = 0;
  virtual void forget(Client::Id id) = 0;
};

/// One request on its way: at most two attempts, one deadline, one `done`.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(boost::asio::io_context& context,
           std::shared_ptr<Route> route,
           ExchangeOwner& owner,
           Client::Id id,
           Request request,
           Client::Done done);

  void start(Deadline deadline);
  /// Ends it with `reason`, unless it has ended.
  void cancel(const Status& reason);
  /// Ends it without a word; the owner is not touched again.
  void drop();

 private:
  enum class Attempt { kEnded, kStale };

  boost::asio::awaitable<void> run(Deadline deadline);
  boost::asio::awaitable<Attempt> attempt(bool kept);
  boost::asio::awaitable<Attempt> readAnswer(bool kept, std::size_t written, std::string failure);
  void armDeadline(Deadline deadline);
  [[nodiscard]] bool maySendAgain(bool kept, std::size_t written) const;
  [[nodiscard]] std::string headText() const;
  [[nodiscard]] Status failure(Code code, const std::string& text) const;
  void finish(Result<Response> result);
  void deliver();

  boost::asio::io_context& context_;
  std::shared_ptr<Route> route_;
  ExchangeOwner* owner_;
  Client::Id id_;
  Request request_;
  std::string head_;
  Client::Done done_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<Connection> connection_;
  std::optional<Result<Response>> result_;
  bool mayHaveArrived_ = false;  ///< a byte of the request may be at the server
};

}  // namespace pushrod::http::detail
