// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/status/status_server.h"

#include <charconv>

namespace pushrod::orchestrator {

namespace {

http::ServerResponse text(int status, std::string body) {
  http::ServerResponse response;
  response.status = status;
  response.contentType = "text/plain; charset=utf-8";
  response.body = std::move(body);
  return response;
}

http::ServerResponse answer(const http::ServerRequest& request,
                            const metrics::PushMetrics& metrics,
                            const StatusBoard& board) {
  if (request.method != "GET" && request.method != "HEAD") {
    return text(405, "this server only answers GET\n");
  }
  if (request.path == "/metrics") {
    http::ServerResponse response;
    response.contentType = "text/plain; version=0.0.4; charset=utf-8";
    response.body = metrics.render();
    return response;
  }
  if (request.path == "/healthz") {
    return text(200, "ok\n");
  }
  if (request.path == "/status") {
    http::ServerResponse response;
    response.body = board.json();
    return response;
  }
  const std::string pages = "pages: /metrics /healthz /status\n";
  return request.path == "/" ? text(200, "pushrod, " + pages) : text(404, pages);
}

}  // namespace

Result<std::unique_ptr<StatusServer>> StatusServer::start(net::IoExecutor& executor,
                                                          const std::string& listen,
                                                          int portOffset,
                                                          const metrics::PushMetrics& metrics,
                                                          const StatusBoard& board) {
  const std::size_t colon = listen.rfind(':');
  int port = -1;
  if (colon != std::string::npos) {
    std::from_chars(listen.data() + colon + 1, listen.data() + listen.size(), port);
  }
  if (port < 0 || port > 65535) {
    return Status(Code::kInvalidArgument, "metrics.listen '" + listen + "' is not HOST:PORT");
  }
  std::string host = listen.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  http::ServerOptions options;
  options.address = host;
  options.port = static_cast<std::uint16_t>(port == 0 ? 0 : port + portOffset);
  Result<std::unique_ptr<http::Server>> server =
      http::Server::listen(executor,
                           options,
                           [&metrics, &board](const http::ServerRequest& request,
                                              std::unique_ptr<http::Responder> responder) {
                             responder->send(answer(request, metrics, board));
                           });
  if (!server.ok()) {
    return server.status();
  }
  auto status = std::unique_ptr<StatusServer>(new StatusServer());
  status->server_ = std::move(*server);
  const bool v6 = host.find(':') != std::string::npos;
  status->address_ = (v6 ? "[" + host + "]" : host) + ":" + std::to_string(status->server_->port());
  return status;
}

}  // namespace pushrod::orchestrator
