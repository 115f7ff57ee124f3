// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "http/client.h"
#include "http/server.h"
#include "net/io_executor.h"

namespace pushrod::http::test {

using std::chrono::milliseconds;

inline constexpr std::chrono::seconds kPatience{20};

/// Runs `work` on the control thread and waits for it.
inline void onThread(net::IoExecutor& executor, std::function<void()> work) {
  std::promise<void> done;
  executor.post([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

/// A client driven from the test's thread.
class SyncClient {
 public:
  SyncClient(net::IoExecutor& executor, const std::string& url, ClientOptions options = {})
      : executor_(executor) {
    onThread(executor_, [&] {
      const Result<Url> parsed = Url::parse(url);
      ASSERT_TRUE(parsed.ok()) << parsed.status().toString();
      auto made = Client::create(executor_, *parsed, std::move(options));
      ASSERT_TRUE(made.ok()) << made.status().toString();
      client_ = std::move(*made);
    });
  }

  ~SyncClient() { close(); }

  SyncClient(const SyncClient&) = delete;
  SyncClient& operator=(const SyncClient&) = delete;

  void close() {
    onThread(executor_, [&] { client_.reset(); });
  }

  std::future<Result<Response>> begin(Request request, Duration limit, Client::Id* id = nullptr) {
    auto promise = std::make_shared<std::promise<Result<Response>>>();
    auto future = promise->get_future();
    onThread(executor_, [&] {
      const Client::Id given = client_->send(
          std::move(request),
          Deadline::after(executor_, limit),
          [promise](Result<Response> result) { promise->set_value(std::move(result)); });
      if (id != nullptr) {
        *id = given;
      }
    });
    return future;
  }

  Result<Response> ask(Request request, Duration limit = milliseconds(10000)) {
    auto future = begin(std::move(request), limit);
    if (future.wait_for(kPatience) != std::future_status::ready) {
      return Status(Code::kInternal, "done was never called");
    }
    return future.get();
  }

  Result<Response> get(const std::string& target = "/x") {
    Request request;
    request.target = target;
    request.repeat = Repeat::kSafe;
    return ask(std::move(request));
  }

  Result<Response> post(const std::string& target,
                        std::string body,
                        Duration limit = milliseconds(10000)) {
    Request request;
    request.method = "POST";
    request.target = target;
    request.body = std::make_shared<const std::string>(std::move(body));
    return ask(std::move(request), limit);
  }

  void cancel(Client::Id id, const Status& reason) {
    onThread(executor_, [&] { client_->cancel(id, reason); });
  }

 private:
  net::IoExecutor& executor_;
  std::unique_ptr<Client> client_;
};

/// Our server with a handler, closed on the control thread.
class TestServer {
 public:
  TestServer(net::IoExecutor& executor, Server::Handler handler, ServerOptions options = {})
      : executor_(executor) {
    auto made = Server::listen(executor_, std::move(options), std::move(handler));
    EXPECT_TRUE(made.ok()) << made.status().toString();
    if (made.ok()) {
      server_ = std::move(*made);
    }
  }

  ~TestServer() { destroy(); }

  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  void destroy() {
    onThread(executor_, [&] { server_.reset(); });
  }

  void close() {
    onThread(executor_, [&] { server_->close(); });
  }

  [[nodiscard]] std::uint16_t port() const { return server_->port(); }

  [[nodiscard]] std::string url(const std::string& path = "") const {
    return "http://127.0.0.1:" + std::to_string(port()) + path;
  }

  [[nodiscard]] std::size_t connections() {
    std::size_t count = 0;
    onThread(executor_, [&] { count = server_->connections(); });
    return count;
  }

 private:
  net::IoExecutor& executor_;
  std::unique_ptr<Server> server_;
};

/// Waits until `condition` holds, a bounded time.
template <typename Condition>
bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

}  // namespace pushrod::http::test
