// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <pushrod/deadline.h>
#include <pushrod/result.h>

#include "net/io_executor.h"

namespace pushrod::http {

/// A parsed http:// or https:// address. Path prefixes, IPv6 literals and names are allowed.
struct Url {
  bool tls = false;
  std::string host;    ///< without brackets
  std::string port;    ///< decimal; 80 or 443 when absent
  std::string prefix;  ///< "" or "/base", never a trailing slash

  static Result<Url> parse(const std::string& text);
  /// "host:port", IPv6 in brackets.
  [[nodiscard]] std::string authority() const;
};

enum class Repeat { kNever, kSafe };

struct Request {
  std::string method = "GET";
  std::string target;  ///< path and query, without the URL's prefix
  /// Shared so that one encoded body serves all engines; null: no body. Always sent as
  /// application/json.
  std::shared_ptr<const std::string> body;
  /// kSafe: may be sent once more on a fresh connection when a kept one turned out closed after the
  /// request was written without any byte of an answer.
  Repeat repeat = Repeat::kNever;
};

struct Response {
  int status = 0;
  std::string contentType;
  std::string body;  ///< whole; a cut-off reply is an error, never a short body
};

struct ClientOptions {
  std::string bearerToken;  ///< empty: none. Never logged
  std::string caFile, certFile, keyFile;
  bool verifyTls = true;
  std::string proxy;  ///< host:port of an HTTP proxy; empty: none, whatever the environment says
  std::size_t maxHeader = 64 << 10;
  std::size_t maxBody = 16 << 20;
  Duration idleLimit = std::chrono::milliseconds(4000);  ///< older kept connections are not reused
};

/// Requests to one server over a small pool of kept connections. One deadline covers resolve,
/// connect, TLS, write and read. Redirects are not followed. A connection is kept only after a
/// complete answer below 500 that allows it; a server seen to close kept ones early without saying
/// so gets a fresh one for every request that must not be repeated. Control thread only; the
/// executor must outlive the client. A name lookup cannot be interrupted: a late one is dropped,
/// but the executor's own end waits for it.
class Client {
 public:
  /// status is ok with any complete answer, whatever its HTTP status. Failures: deadlineExceeded,
  /// unavailable with the reason (also an answer that is cut, too large or without a declared
  /// length), failedPrecondition where something answers that speaks no HTTP, or invalidArgument
  /// for a method or target that HTTP forbids; outcome notSent when no byte of the request can have
  /// arrived, else unknown.
  using Done = std::function<void(Result<Response>)>;
  using Id = std::uint64_t;

  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;

  /// `done` fires exactly once, never inline. Several requests may be out at a time (each on its
  /// own connection).
  virtual Id send(Request request, Deadline deadline, Done done) = 0;
  /// Ends one request with `reason`; its connection is closed.
  virtual void cancel(Id id, const Status& reason) = 0;

  /// Destroying the client closes everything; outstanding `done`s are dropped.
  static Result<std::unique_ptr<Client>> create(net::IoExecutor& executor,
                                                const Url& url,
                                                ClientOptions options);
};

}  // namespace pushrod::http
