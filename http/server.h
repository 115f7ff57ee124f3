// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/result.h>

#include "net/io_executor.h"

namespace pushrod::http {

struct ServerRequest {
  std::string method;
  std::string path;   ///< without the query
  std::string query;  ///< without '?'; still encoded
  std::string contentType;
  std::string host;
  std::string authorization;
  std::string body;
  std::uint64_t connection = 0;  ///< number of the connection, from 1
};

struct ServerResponse {
  int status = 200;
  std::string contentType = "application/json";
  std::string body;
  bool close = false;  ///< closes the connection after the answer
};

/// What becomes of one request. Exactly one of its functions is called, once, from the control
/// thread, at any later time; dropping the object closes the connection.
class Responder {
 public:
  Responder() = default;
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;
  virtual ~Responder() = default;
  virtual void send(ServerResponse response) = 0;
  /// Raw bytes instead of an answer, then close; `perSecond` > 0 trickles so many bytes a second.
  virtual void sendRaw(std::string bytes, int perSecond = 0) = 0;
  /// Closes without an answer; kReset sends a TCP reset.
  enum class Cut { kClose, kReset };
  virtual void cut(Cut how) = 0;
};

struct ServerOptions {
  std::string address = "127.0.0.1";  ///< an IP address, or localhost
  std::uint16_t port = 0;             ///< 0: the system chooses
  std::size_t maxConnections = 64;
  std::size_t maxHeader = 16 << 10;
  std::size_t maxBody = 64 << 10;
  Duration idle = std::chrono::seconds(30);     ///< kept connections without a request
  Duration request = std::chrono::seconds(30);  ///< reading one request, and writing one answer
};

/// A small HTTP/1.1 server for GET, HEAD and POST; others get 405. Control thread only; the
/// executor must outlive it, responders need not end before it. A client that does not read, sends
/// garbage or holds connections is cut at the limits above; one that goes ends its request.
class Server {
 public:
  using Handler = std::function<void(ServerRequest, std::unique_ptr<Responder>)>;

  Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  virtual ~Server() = default;

  [[nodiscard]] virtual std::uint16_t port() const = 0;
  [[nodiscard]] virtual std::size_t connections() const = 0;
  /// Stops accepting; kept connections are closed, requests under way may still be answered.
  virtual void close() = 0;

  /// Binds at once; a taken port is unavailable, naming it. May be called from any thread.
  static Result<std::unique_ptr<Server>> listen(net::IoExecutor& executor,
                                                ServerOptions options,
                                                Handler handler);
};

}  // namespace pushrod::http
