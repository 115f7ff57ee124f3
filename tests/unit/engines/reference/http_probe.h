// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <boost/json/value.hpp>

namespace pushrod::engines::reference::testing {

/// An answer as it came over the socket.
struct Answer {
  int status = 0;       ///< 0: none came
  std::string raw;      ///< everything read
  std::string headers;  ///< lower case
  std::string body;
  bool reset = false;  ///< the connection ended by a TCP reset

  [[nodiscard]] boost::json::value json() const;
  /// The text of an error in any of the server's shapes.
  [[nodiscard]] std::string error() const;
};

/// A blocking HTTP connection over a plain socket.
class HttpProbe {
 public:
  explicit HttpProbe(std::uint16_t port);
  HttpProbe(const HttpProbe&) = delete;
  HttpProbe& operator=(const HttpProbe&) = delete;
  ~HttpProbe();

  [[nodiscard]] bool connected() const { return fd_ >= 0; }

  void send(const std::string& text);
  /// One answer by its content length, or what came until the limit or the end.
  Answer read(std::chrono::milliseconds limit = std::chrono::seconds(5));
  /// Whether the server has closed the connection, within the limit.
  bool closed(std::chrono::milliseconds limit = std::chrono::seconds(2));

  static std::string render(const std::string& method,
                            const std::string& target,
                            const std::optional<std::string>& body,
                            const std::string& contentType);

 private:
  int fd_ = -1;
};

/// One request on a connection of its own. An empty content type sends none.
Answer request(std::uint16_t port,
               const std::string& method,
               const std::string& target,
               const std::optional<std::string>& body = std::nullopt,
               const std::string& contentType = "application/json");

}  // namespace pushrod::engines::reference::testing
