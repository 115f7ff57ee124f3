// SPDX-License-Identifier: Apache-2.0
// What a handler can do, and lifetimes.
#include <vector>

#include "tests/unit/http/http_support.h"
#include "tests/unit/http/raw_peer.h"

namespace pushrod::http::test {
namespace {

const std::string kGet = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";

Server::Handler always(const std::string& body) {
  return [body](ServerRequest, std::unique_ptr<Responder> responder) {
    ServerResponse response;
    response.body = body;
    responder->send(std::move(response));
  };
}

class ServerTest : public ::testing::Test {
 protected:
  net::IoExecutor executor_;
};

TEST_F(ServerTest, AnswersOnAKeptConnection) {
  TestServer server(executor_, always("{}"));
  RawSocket socket = RawSocket::connectTo(server.port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(socket.write(kGet));
    const std::string answer = socket.readMessage();
    EXPECT_EQ(answer.substr(0, 17), "HTTP/1.1 200 OK\r\n");
    EXPECT_EQ(answer.substr(answer.size() - 6), "\r\n\r\n{}");
  }
  EXPECT_EQ(server.connections(), 1U);
  socket.close();
  EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
}

TEST_F(ServerTest, AnswersHeadWithoutABody) {
  TestServer server(executor_, always("12345"));
  RawSocket socket = RawSocket::connectTo(server.port());
  socket.write("HEAD /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const std::string answer = socket.readToEnd();
  EXPECT_NE(answer.find("Content-Length: 5\r\n"), std::string::npos);
  EXPECT_EQ(answer.substr(answer.size() - 4), "\r\n\r\n");
}

TEST_F(ServerTest, AnswersRequestsThatCameTogetherInOrder) {
  TestServer server(executor_, [](ServerRequest request, std::unique_ptr<Responder> responder) {
    ServerResponse response;
    response.body = request.path;
    response.close = request.path == "/2";
    responder->send(std::move(response));
  });
  RawSocket socket = RawSocket::connectTo(server.port());
  socket.write("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n");
  const std::string answers = socket.readToEnd();
  EXPECT_LT(answers.find("/1"), answers.find("/2"));
  EXPECT_NE(answers.find("/2"), std::string::npos);
}

TEST_F(ServerTest, InvitesABodyThatWaitsForIt) {
  TestServer server(executor_, always("{}"));
  RawSocket socket = RawSocket::connectTo(server.port());
  socket.write("POST /x HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(socket.readSome(), "HTTP/1.1 100 Continue\r\n\r\n");
  socket.write("{}");
  EXPECT_EQ(socket.readMessage().substr(0, 15), "HTTP/1.1 200 OK");
}

TEST_F(ServerTest, SendsRawBytesAndCloses) {
  TestServer server(executor_, [](ServerRequest, std::unique_ptr<Responder> responder) {
    responder->sendRaw("not http at all");
  });
  RawSocket socket = RawSocket::connectTo(server.port());
  socket.write(kGet);
  EXPECT_EQ(socket.readToEnd(), "not http at all");
}

TEST_F(ServerTest, TricklesRawBytes) {
  TestServer server(executor_, [](ServerRequest, std::unique_ptr<Responder> responder) {
    responder->sendRaw("abcdef", 40);
  });
  RawSocket socket = RawSocket::connectTo(server.port());
  const auto start = std::chrono::steady_clock::now();
  socket.write(kGet);
  EXPECT_EQ(socket.readToEnd(), "abcdef");
  // Two bytes in each of three steps of 50 ms.
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(140));
}

TEST_F(ServerTest, CutsAsItIsTold) {
  TestServer server(executor_, [](ServerRequest request, std::unique_ptr<Responder> responder) {
    if (request.path == "/reset") {
      responder->cut(Responder::Cut::kReset);
    } else if (request.path == "/close") {
      responder->cut(Responder::Cut::kClose);
    }
    // Otherwise it is dropped unused.
  });
  for (const std::string path : {"/reset", "/close", "/dropped"}) {
    RawSocket socket = RawSocket::connectTo(server.port());
    socket.write("GET " + path + " HTTP/1.1\r\n\r\n");
    EXPECT_EQ(socket.readToEnd(), "");
    EXPECT_EQ(socket.wasReset(), path == "/reset") << path;
  }
}

TEST_F(ServerTest, NumbersItsConnections) {
  std::vector<std::uint64_t> seen;
  TestServer server(executor_, [&](ServerRequest request, std::unique_ptr<Responder> responder) {
    seen.push_back(request.connection);
    responder->send(ServerResponse{});
  });
  for (int i = 0; i < 2; ++i) {
    RawSocket socket = RawSocket::connectTo(server.port());
    socket.write(kGet);
    socket.readMessage();
    socket.write(kGet);
    socket.readMessage();
  }
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 1, 2, 2}));
}

TEST_F(ServerTest, CloseLetsTheAnswerOutAndEndsTheRest) {
  std::unique_ptr<Responder> held;
  TestServer server(executor_, [&](ServerRequest request, std::unique_ptr<Responder> responder) {
    if (request.path == "/held") {
      held = std::move(responder);
    } else {
      responder->send(ServerResponse{});
    }
  });
  RawSocket idle = RawSocket::connectTo(server.port());
  idle.write(kGet);
  idle.readMessage();
  RawSocket busy = RawSocket::connectTo(server.port());
  busy.write("GET /held HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(eventually([&] {
    bool there = false;
    onThread(executor_, [&] { there = held != nullptr; });
    return there;
  }));
  server.close();
  EXPECT_TRUE(idle.closedByPeer());
  EXPECT_LT(RawSocket::connectTo(server.port()).descriptor(), 0);
  onThread(executor_, [&] {
    ServerResponse response;
    response.body = "late but whole";
    held->send(std::move(response));
    held.reset();
  });
  EXPECT_NE(busy.readToEnd().find("late but whole"), std::string::npos);
  busy.close();
  EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
}

TEST_F(ServerTest, ARespondersServerMayGoFirst) {
  std::unique_ptr<Responder> held;
  auto server = std::make_unique<TestServer>(
      executor_,
      [&](ServerRequest, std::unique_ptr<Responder> responder) { held = std::move(responder); });
  RawSocket socket = RawSocket::connectTo(server->port());
  socket.write(kGet);
  ASSERT_TRUE(eventually([&] {
    bool there = false;
    onThread(executor_, [&] { there = held != nullptr; });
    return there;
  }));
  server.reset();
  EXPECT_TRUE(socket.closedByPeer());
  onThread(executor_, [&] {
    held->send(ServerResponse{});
    held.reset();
  });
}

TEST_F(ServerTest, AHandlerMayDestroyItsServer) {
  std::unique_ptr<Server> server;
  auto made =
      Server::listen(executor_, {}, [&](ServerRequest, std::unique_ptr<Responder> responder) {
        server.reset();
        responder->send(ServerResponse{});
      });
  ASSERT_TRUE(made.ok());
  RawSocket socket = RawSocket::connectTo((*made)->port());
  onThread(executor_, [&] { server = std::move(*made); });
  socket.write(kGet);
  EXPECT_EQ(socket.readToEnd(), "");
  onThread(executor_, [] {});
}

TEST_F(ServerTest, EndsARequestWhoseClientHasGone) {
  std::unique_ptr<Responder> held;
  TestServer server(executor_, [&](ServerRequest, std::unique_ptr<Responder> responder) {
    held = std::move(responder);
  });
  {
    RawSocket socket = RawSocket::connectTo(server.port());
    socket.write(kGet);
    ASSERT_TRUE(eventually([&] {
      bool there = false;
      onThread(executor_, [&] { there = held != nullptr; });
      return there;
    }));
  }
  EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
  onThread(executor_, [&] {
    held->send(ServerResponse{});
    held.reset();
  });
}

TEST_F(ServerTest, ATakenPortAndAnOddAddressAreNamed) {
  TestServer first(executor_, always("{}"));
  ServerOptions options;
  options.port = first.port();
  const auto taken = Server::listen(executor_, options, always("{}"));
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.status().code(), Code::kUnavailable);
  EXPECT_NE(taken.status().message().find(std::to_string(first.port())), std::string::npos);
  options.address = "not an address";
  const auto odd = Server::listen(executor_, options, always("{}"));
  EXPECT_EQ(odd.status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace pushrod::http::test
