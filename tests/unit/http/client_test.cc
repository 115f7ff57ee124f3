// SPDX-License-Identifier: Apache-2.0
// The client against our own server.
#include <cstdlib>
#include <deque>
#include <mutex>
#include <set>

#include "tests/unit/http/http_support.h"

namespace pushrod::http::test {
namespace {

/// Answers every request with what it saw.
class Echo {
 public:
  Server::Handler handler() {
    return [this](ServerRequest request, std::unique_ptr<Responder> responder) {
      ServerResponse response;
      response.body = request.body;
      if (request.path == "/fail") {
        response.status = 500;
      }
      response.close = request.path == "/bye";
      requests.push_back(std::move(request));
      responder->send(std::move(response));
    };
  }

  std::deque<ServerRequest> requests;  ///< control thread, or after the answer
};

class ClientTest : public ::testing::Test {
 protected:
  net::IoExecutor executor_;
  Echo echo_;
};

TEST_F(ClientTest, SendsMethodTargetBodyAndToken) {
  TestServer server(executor_, echo_.handler());
  ClientOptions options;
  options.bearerToken = "secret";
  SyncClient client(executor_, server.url("/base/"), options);
  const auto answer = client.post("/pause?mode=keep", "{\"a\": 1}");
  ASSERT_TRUE(answer.ok()) << answer.status().toString();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "{\"a\": 1}");
  EXPECT_EQ(answer->contentType, "application/json");
  const ServerRequest& seen = echo_.requests.at(0);
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.path, "/base/pause");
  EXPECT_EQ(seen.query, "mode=keep");
  EXPECT_EQ(seen.contentType, "application/json");
  EXPECT_EQ(seen.authorization, "Bearer secret");
  EXPECT_EQ(seen.host, "127.0.0.1:" + std::to_string(server.port()));
}

TEST_F(ClientTest, SendsNoContentTypeWithoutABody) {
  TestServer server(executor_, echo_.handler());
  SyncClient client(executor_, server.url());
  Request request;
  request.method = "POST";
  request.target = "/resume";
  ASSERT_TRUE(client.ask(request).ok());
  EXPECT_EQ(echo_.requests.at(0).contentType, "");
  EXPECT_EQ(echo_.requests.at(0).authorization, "");
  request.method = "HEAD";
  ASSERT_TRUE(client.ask(request).ok());
  EXPECT_EQ(echo_.requests.at(1).method, "HEAD");
}

TEST_F(ClientTest, KeepsAConnectionOnlyWhileItIsAllowedTo) {
  TestServer server(executor_, echo_.handler());
  SyncClient client(executor_, server.url());
  for (const char* target : {"/a", "/b", "/bye", "/c", "/fail", "/d"}) {
    ASSERT_TRUE(client.post(target, "{}").ok());
  }
  std::vector<std::uint64_t> connections;
  for (const ServerRequest& request : echo_.requests) {
    connections.push_back(request.connection);
  }
  // A new one after the announced close, and after the 500, which announced nothing.
  EXPECT_EQ(connections, (std::vector<std::uint64_t>{1, 1, 1, 2, 2, 3}));
}

TEST_F(ClientTest, GivesParallelRequestsTheirOwnConnections) {
  std::vector<std::unique_ptr<Responder>> waiting;
  std::set<std::uint64_t> connections;
  TestServer server(executor_, [&](ServerRequest request, std::unique_ptr<Responder> responder) {
    connections.insert(request.connection);
    waiting.push_back(std::move(responder));
    if (waiting.size() == 3) {
      for (auto& held : waiting) {
        held->send(ServerResponse{});
      }
    }
  });
  SyncClient client(executor_, server.url());
  std::vector<std::future<Result<Response>>> answers;
  for (int i = 0; i < 3; ++i) {
    answers.push_back(client.begin({"GET", "/x", nullptr, {}}, milliseconds(10000)));
  }
  for (auto& answer : answers) {
    ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
    EXPECT_TRUE(answer.get().ok());
  }
  EXPECT_EQ(connections.size(), 3U);
}

TEST_F(ClientTest, FansOneBodyOutToManyServers) {
  constexpr int kServers = 256;
  std::vector<std::unique_ptr<TestServer>> servers;
  std::vector<std::unique_ptr<SyncClient>> clients;
  for (int i = 0; i < kServers; ++i) {
    servers.push_back(std::make_unique<TestServer>(executor_, echo_.handler()));
    clients.push_back(std::make_unique<SyncClient>(executor_, servers.back()->url()));
  }
  const auto body = std::make_shared<const std::string>(std::string(30000, 'b'));
  for (int round = 0; round < 2; ++round) {
    std::vector<std::future<Result<Response>>> answers;
    for (auto& client : clients) {
      answers.push_back(client->begin({"POST", "/update_weights", body, {}}, milliseconds(20000)));
    }
    for (auto& answer : answers) {
      const auto result = answer.get();
      ASSERT_TRUE(result.ok()) << result.status().toString();
      EXPECT_EQ(result->body, *body);
    }
  }
  // The clients held references, not copies, and let go of them.
  EXPECT_TRUE(eventually([&] { return body.use_count() == 1; }));
  for (const ServerRequest& request : echo_.requests) {
    EXPECT_EQ(request.connection, 1U);
  }
}

TEST_F(ClientTest, CarriesLargeBodiesBothWays) {
  ServerOptions options;
  options.maxBody = 16 << 20;
  TestServer server(executor_, echo_.handler(), options);
  SyncClient client(executor_, server.url());
  std::string body(8 << 20, 'x');
  for (std::size_t i = 0; i < body.size(); i += 4096) {
    body[i] = static_cast<char>('a' + i / 4096 % 26);
  }
  const auto answer = client.post("/x", body);
  ASSERT_TRUE(answer.ok()) << answer.status().toString();
  EXPECT_EQ(answer->body, body);
}

TEST_F(ClientTest, IgnoresTheEnvironmentsProxies) {
  for (const char* name : {"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"}) {
    ::setenv(name, "http://127.0.0.1:1", 1);
  }
  TestServer server(executor_, echo_.handler());
  SyncClient client(executor_, server.url());
  EXPECT_TRUE(client.get().ok());
  for (const char* name : {"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"}) {
    ::unsetenv(name);
  }
}

TEST_F(ClientTest, AsksAConfiguredProxyInAbsoluteForm) {
  TestServer proxy(executor_, echo_.handler());
  ClientOptions options;
  options.proxy = "127.0.0.1:" + std::to_string(proxy.port());
  SyncClient client(executor_, "http://engine.invalid:8000/base", options);
  const auto answer = client.get("/health?x=1");
  ASSERT_TRUE(answer.ok()) << answer.status().toString();
  EXPECT_EQ(echo_.requests.at(0).path, "http://engine.invalid:8000/base/health");
  EXPECT_EQ(echo_.requests.at(0).query, "x=1");
  EXPECT_EQ(echo_.requests.at(0).host, "engine.invalid:8000");
}

TEST_F(ClientTest, RefusesWhatWouldBreakTheHeader) {
  TestServer server(executor_, echo_.handler());
  SyncClient client(executor_, server.url());
  for (const char* target : {"", "x", "/a b", "/a\r\nX: y"}) {
    const auto answer = client.get(target);
    ASSERT_FALSE(answer.ok()) << target;
    EXPECT_EQ(answer.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(answer.status().outcome(), Outcome::kNotSent);
  }
  onThread(executor_, [&] {
    ClientOptions options;
    options.bearerToken = "hunter2\r\nX: y";
    const auto made = Client::create(executor_, *Url::parse(server.url()), options);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().message().find("hunter2"), std::string::npos);
    options.bearerToken = "";
    options.proxy = "not a proxy";
    EXPECT_EQ(Client::create(executor_, *Url::parse(server.url()), options).status().code(),
              Code::kInvalidArgument);
  });
  EXPECT_TRUE(echo_.requests.empty());
}

TEST_F(ClientTest, NeverCallsBackInlineAndMayGoInItsCallback) {
  TestServer server(executor_, echo_.handler());
  std::promise<Result<Response>> done;
  onThread(executor_, [&] {
    auto made = Client::create(executor_, *Url::parse(server.url()), {});
    auto holder = std::make_shared<std::unique_ptr<Client>>(std::move(*made));
    auto returned = std::make_shared<bool>(false);
    for (const char* target : {"/x", "not valid"}) {
      (*holder)->send({"GET", target, nullptr, {}},
                      Deadline::after(executor_, milliseconds(10000)),
                      [&done, returned, holder](Result<Response> result) {
                        EXPECT_TRUE(*returned);
                        // The first to end takes the client, and with it the other's callback.
                        holder->reset();
                        done.set_value(std::move(result));
                      });
    }
    *returned = true;
  });
  auto future = done.get_future();
  ASSERT_EQ(future.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(future.get().status().code(), Code::kInvalidArgument);
  onThread(executor_, [] {});
}

TEST_F(ClientTest, DropsWhatIsOutstandingWhenItGoes) {
  std::vector<std::unique_ptr<Responder>> waiting;
  TestServer server(executor_, [&](ServerRequest, std::unique_ptr<Responder> responder) {
    waiting.push_back(std::move(responder));
  });
  auto token = std::make_shared<int>(0);
  onThread(executor_, [&] {
    auto made = Client::create(executor_, *Url::parse(server.url()), {});
    auto client = std::make_shared<std::unique_ptr<Client>>(std::move(*made));
    (*client)->send({"GET", "/x", nullptr, {}},
                    Deadline::never(),
                    [token](const Result<Response>&) { ADD_FAILURE() << "called after the end"; });
    executor_.postAt(executor_.now() + milliseconds(50), [client] { client->reset(); });
  });
  EXPECT_TRUE(eventually([&] { return token.use_count() == 1; }));
  EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
}

}  // namespace
}  // namespace pushrod::http::test
