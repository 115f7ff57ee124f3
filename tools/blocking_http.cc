// SPDX-License-Identifier: Apache-2.0
#include "tools/blocking_http.h"

#include <future>
#include <memory>
#include <optional>
#include <utility>

namespace pushrod::tools {
namespace {

/// Lives until the later of the waiting thread and the control thread has done with it.
struct Exchange {
  std::promise<Result<http::Response>> promise;
  std::unique_ptr<http::Client> client;
};

void send(net::IoExecutor& executor,
          const std::shared_ptr<Exchange>& exchange,
          const http::Url& url,
          http::Request request,
          Deadline deadline) {
  auto client = http::Client::create(executor, url, {});
  if (!client) {
    exchange->promise.set_value(client.status());
    return;
  }
  exchange->client = std::move(*client);
  exchange->client->send(
      std::move(request), deadline, [exchange, &executor](Result<http::Response> response) {
        exchange->promise.set_value(std::move(response));
        // Not from inside the client's own callback.
        executor.post([exchange] { exchange->client.reset(); });
      });
}

}  // namespace

Result<http::Response> fetch(net::IoExecutor& executor,
                             const std::string& base,
                             const std::string& target,
                             Duration limit,
                             const std::string& body) {
  Result<http::Url> url = http::Url::parse(base);
  if (!url) {
    return url.status();
  }
  http::Request request;
  request.method = body.empty() ? "GET" : "POST";
  request.target = target;
  if (!body.empty()) {
    request.body = std::make_shared<const std::string>(body);
  }
  const auto exchange = std::make_shared<Exchange>();
  std::future<Result<http::Response>> answer = exchange->promise.get_future();
  const Deadline deadline = Deadline::after(executor, limit);
  executor.post([&executor, exchange, url = *url, request, deadline] {
    send(executor, exchange, url, request, deadline);
  });
  // The client ends by the deadline; a little more only covers the way back to this thread.
  if (answer.wait_for(limit + std::chrono::seconds(2)) != std::future_status::ready) {
    return Status(Code::kDeadlineExceeded, base + target + " did not answer in time");
  }
  return answer.get();
}

}  // namespace pushrod::tools
