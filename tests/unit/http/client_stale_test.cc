// SPDX-License-Identifier: Apache-2.0
// Kept connections that the server closed, as uvicorn does.
#include "tests/unit/http/http_support.h"
#include "tests/unit/http/raw_peer.h"

namespace pushrod::http::test {
namespace {

class StaleTest : public ::testing::Test {
 protected:
  net::IoExecutor executor_;
  std::atomic<int> executed_{0};
  std::atomic<int> closed_{0};
};

TEST_F(StaleTest, NoticesAServerThatClosesAfterEachReplyWithoutSayingSo) {
  RawServer server([&](RawSocket& socket, int) {
    socket.readMessage();
    ++executed_;
    socket.write(okAnswer("{}"));
    socket.close();
    ++closed_;
  });
  SyncClient client(executor_, server.url());
  for (int i = 1; i <= 10; ++i) {
    const auto answer = client.post("/start_weight_update", "{}");
    ASSERT_TRUE(answer.ok()) << i << ": " << answer.status().toString();
    ASSERT_TRUE(eventually([&] { return closed_ == i; }));
  }
  EXPECT_EQ(executed_, 10);
}

TEST_F(StaleTest, RepeatsWhatIsSafeWhenTheCloseComesAtTheWrite) {
  RawServer server([&](RawSocket& socket, int index) {
    socket.readMessage();
    ++executed_;
    socket.write(okAnswer("{}"));
    if (index == 0) {
      socket.readMessage();  // taken in, and left without an answer
    }
  });
  SyncClient client(executor_, server.url());
  ASSERT_TRUE(client.get().ok());
  const auto answer = client.get();
  ASSERT_TRUE(answer.ok()) << answer.status().toString();
  EXPECT_EQ(server.accepted(), 2);
  EXPECT_EQ(executed_, 2);
}

TEST_F(StaleTest, NeverRepeatsTheRest) {
  RawServer server([&](RawSocket& socket, int) {
    socket.readMessage();
    socket.write(okAnswer("{}"));
    if (!socket.readMessage().empty()) {
      ++executed_;
    }
  });
  SyncClient client(executor_, server.url());
  ASSERT_TRUE(client.post("/a", "{}").ok());
  const auto answer = client.post("/b", "{}");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.status().code(), Code::kUnavailable);
  EXPECT_EQ(answer.status().outcome(), Outcome::kUnknown);
  EXPECT_EQ(executed_, 1);
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(StaleTest, GivesUpAfterOneRepeat) {
  RawServer server([&](RawSocket& socket, int index) {
    socket.readMessage();
    if (index == 0) {
      socket.write(okAnswer("{}"));
      socket.readMessage();
    }
    ++executed_;
  });
  SyncClient client(executor_, server.url());
  ASSERT_TRUE(client.get().ok());
  const auto answer = client.get();
  EXPECT_EQ(answer.status().code(), Code::kUnavailable);
  EXPECT_EQ(answer.status().outcome(), Outcome::kUnknown);
  EXPECT_EQ(executed_, 2);
}

TEST_F(StaleTest, DoesNotRepeatAfterTheFirstByteOfAnAnswer) {
  RawServer server([&](RawSocket& socket, int) {
    socket.readMessage();
    socket.write(okAnswer("{}"));
    socket.readMessage();
    socket.write("H");
  });
  SyncClient client(executor_, server.url());
  ASSERT_TRUE(client.get().ok());
  EXPECT_EQ(client.get().status().outcome(), Outcome::kUnknown);
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(StaleTest, TrustsNoKeptConnectionOfAServerThatClosesThemEarly) {
  std::vector<std::uint64_t> connections;
  TestServer server(executor_, [&](ServerRequest request, std::unique_ptr<Responder> responder) {
    connections.push_back(request.connection);
    if (request.path == "/closes") {
      responder->sendRaw(okAnswer("{}"));  // and no word of the close that follows
    } else {
      responder->send(ServerResponse{});
    }
  });
  SyncClient client(executor_, server.url());
  ASSERT_TRUE(client.get("/closes").ok());
  // Our side of the connection stays until it is looked at.
  ASSERT_TRUE(client.get("/a").ok());
  ASSERT_TRUE(client.get("/b").ok());
  ASSERT_TRUE(client.post("/c", "{}").ok());
  // What may be repeated still uses a kept one; what may not gets its own.
  EXPECT_EQ(connections, (std::vector<std::uint64_t>{1, 2, 2, 3}));
}

TEST_F(StaleTest, ClosesIdleConnectionsItself) {
  RawServer server([&](RawSocket& socket, int) {
    socket.readMessage();
    socket.write(okAnswer("{}"));
    if (socket.closedByPeer()) {
      ++closed_;
    }
  });
  ClientOptions options;
  options.idleLimit = milliseconds(30);
  SyncClient client(executor_, server.url(), options);
  ASSERT_TRUE(client.get().ok());
  EXPECT_TRUE(eventually([&] { return closed_ == 1; }));
  ASSERT_TRUE(client.post("/x", "{}").ok());
  EXPECT_EQ(server.accepted(), 2);
}

TEST_F(StaleTest, LeavesAConnectionThatSaysSomethingUnasked) {
  std::atomic<int> sent{0};
  RawServer server([&](RawSocket& socket, int index) {
    socket.readMessage();
    socket.write(okAnswer("{}"));
    if (index == 0) {
      EXPECT_TRUE(eventually([&] { return executed_ == 1; }));
      socket.write(okAnswer("{\"late\": true}"));
      ++sent;
      socket.closedByPeer();
    }
  });
  SyncClient client(executor_, server.url());
  ASSERT_TRUE(client.get().ok());
  ++executed_;
  ASSERT_TRUE(eventually([&] { return sent == 1; }));
  const auto answer = client.get();
  ASSERT_TRUE(answer.ok()) << answer.status().toString();
  EXPECT_EQ(answer->body, "{}");
  EXPECT_EQ(server.accepted(), 2);
}

}  // namespace
}  // namespace pushrod::http::test
