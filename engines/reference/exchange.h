// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "engines/reference/faults.h"
#include "engines/reference/journal.h"
#include "engines/reference/profile.h"
#include "http/server.h"

namespace pushrod::engines::reference {

/// One thing that the request validation has found.
struct Invalid {
  std::string_view type;
  std::string location;  ///< as "body.init_info"
  std::string text;
  std::string input = "None";  ///< what was given instead
  std::string context = {};    ///< as Python shows it; empty: none
};

/// One request and its one answer, in the server's own shapes. Control thread only. Dropping it
/// unanswered closes the connection.
class Exchange {
 public:
  Exchange(http::ServerRequest request,
           std::unique_ptr<http::Responder> responder,
           const Profile& profile,
           Journal& journal)
      : request_(std::move(request)),
        responder_(std::move(responder)),
        profile_(profile),
        journal_(journal) {}

  [[nodiscard]] const http::ServerRequest& request() const { return request_; }

  /// The fault that hits this request, if any.
  std::optional<FaultRule> fault;

  /// Whether the body counts as JSON for routes that look at the content type.
  [[nodiscard]] bool hasJsonType() const;
  /// A decoded query value.
  [[nodiscard]] std::optional<std::string> query(std::string_view key) const;
  /// All values of a repeated key.
  [[nodiscard]] std::vector<std::string> queryAll(std::string_view key) const;

  void json(const boost::json::value& body);
  void empty();
  void text(std::string body, std::string contentType);
  void answer(const http::ServerResponse& response);
  /// 400 in the server's error shape.
  void badRequest(const std::string& message);
  /// 400 of the request validation.
  void invalid(const std::vector<Invalid>& all);
  /// 500 in the server's error shape; the connection is closed without having been announced.
  void failed(const std::string& message);
  /// 500 of a route that catches its own failures: a flat shape, and the connection stays.
  void failedFlat(const std::string& message);
  /// The shape of a route or a method that does not exist.
  void notFound(int status, std::string_view detail);
  void raw(const std::string& bytes);
  void cut(http::Responder::Cut how);

 private:
  void write(const http::ServerResponse& response, bool closeSilently);
  void note(int status, std::size_t bytes, std::string_view how);

  http::ServerRequest request_;
  std::unique_ptr<http::Responder> responder_;
  const Profile& profile_;
  Journal& journal_;
};

using ExchangePtr = std::shared_ptr<Exchange>;

}  // namespace pushrod::engines::reference
