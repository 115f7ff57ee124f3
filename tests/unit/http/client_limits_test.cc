// SPDX-License-Identifier: Apache-2.0
// Deadlines, cancelling, and addresses that do not answer.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/http/fake_names.h"
#include "tests/unit/http/http_support.h"
#include "tests/unit/http/raw_peer.h"

namespace pushrod::http::test {
namespace {

using Clock = std::chrono::steady_clock;

/// A port on which connecting neither succeeds nor fails: its queue is full.
class BlackHole {
 public:
  explicit BlackHole(int family = AF_INET, std::uint16_t port = 0) {
    sockaddr_storage address{};
    socklen_t size = sizeof(sockaddr_in);
    if (family == AF_INET6) {
      auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
      v6.sin6_family = AF_INET6;
      v6.sin6_addr = in6addr_loopback;
      v6.sin6_port = htons(port);
      size = sizeof(sockaddr_in6);
    } else {
      auto& v4 = reinterpret_cast<sockaddr_in&>(address);
      v4.sin_family = AF_INET;
      v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      v4.sin_port = htons(port);
    }
    descriptors_.push_back(::socket(family, SOCK_STREAM, 0));
    usable_ = ::bind(descriptors_[0], reinterpret_cast<sockaddr*>(&address), size) == 0 &&
              ::listen(descriptors_[0], 0) == 0;
    ::getsockname(descriptors_[0], reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                     : reinterpret_cast<sockaddr_in&>(address).sin_port);
    for (int i = 0; usable_ && i < 4; ++i) {
      descriptors_.push_back(::socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0));
      [[maybe_unused]] const int pending =
          ::connect(descriptors_.back(), reinterpret_cast<sockaddr*>(&address), size);
    }
  }

  ~BlackHole() {
    for (const int descriptor : descriptors_) {
      ::close(descriptor);
    }
  }

  BlackHole(const BlackHole&) = delete;
  BlackHole& operator=(const BlackHole&) = delete;

  [[nodiscard]] bool usable() const { return usable_; }

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  std::vector<int> descriptors_;
  std::uint16_t port_ = 0;
  bool usable_ = false;
};

class LimitsTest : public ::testing::Test {
 protected:
  /// Asks with a limit of 150 ms and checks that it ends by it, and how.
  void expectDeadline(const std::string& url, Outcome outcome) {
    SyncClient client(executor_, url);
    const auto start = Clock::now();
    const auto answer = client.ask({"GET", "/x", nullptr, Repeat::kSafe}, milliseconds(150));
    const auto spent = Clock::now() - start;
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.status().code(), Code::kDeadlineExceeded) << answer.status().toString();
    EXPECT_EQ(answer.status().outcome(), outcome);
    EXPECT_GE(spent, milliseconds(140));
    EXPECT_LT(spent, milliseconds(5000));
  }

  net::IoExecutor executor_;
};

TEST_F(LimitsTest, DeadlineCoversConnecting) {
  const BlackHole hole;
  ASSERT_TRUE(hole.usable());
  expectDeadline(hole.url(), Outcome::kNotSent);
}

TEST_F(LimitsTest, DeadlineCoversTheResolver) {
  holdHangingName();
  expectDeadline("http://hang.test:1", Outcome::kNotSent);
  // Its late result meets a client that has gone.
  releaseHangingName();
  onThread(executor_, [] {});
}

TEST_F(LimitsTest, DeadlineCoversASilentServer) {
  RawServer server([](RawSocket& socket, int) { socket.closedByPeer(); });
  expectDeadline(server.url(), Outcome::kUnknown);
}

TEST_F(LimitsTest, DeadlineCoversABodyThatStalls) {
  RawServer server([](RawSocket& socket, int) {
    socket.readMessage();
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    socket.closedByPeer();
  });
  expectDeadline(server.url(), Outcome::kUnknown);
}

TEST_F(LimitsTest, DeadlineCoversAServerThatTrickles) {
  TestServer server(executor_, [](ServerRequest, std::unique_ptr<Responder> responder) {
    responder->sendRaw(okAnswer("{}"), 20);
  });
  expectDeadline(server.url(), Outcome::kUnknown);
}

TEST_F(LimitsTest, DeadlineCoversAServerThatReadsNothing) {
  std::promise<void> ended;
  auto waiting = ended.get_future();
  RawServer server([&](RawSocket&, int) { waiting.wait(); });
  {
    SyncClient client(executor_, server.url());
    const auto answer = client.post("/x", std::string(32 << 20, 'x'), milliseconds(200));
    EXPECT_EQ(answer.status().code(), Code::kDeadlineExceeded);
    EXPECT_EQ(answer.status().outcome(), Outcome::kUnknown);
  }
  ended.set_value();
}

TEST_F(LimitsTest, SendsNothingWhenNoTimeIsLeft) {
  RawServer server([](RawSocket&, int) {});
  SyncClient client(executor_, server.url());
  const auto answer = client.post("/x", "{}", milliseconds(0));
  EXPECT_EQ(answer.status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(answer.status().outcome(), Outcome::kNotSent);
  EXPECT_EQ(server.accepted(), 0);
}

TEST_F(LimitsTest, ARefusedConnectionSaysWhereAndWhy) {
  std::uint16_t port = 0;
  {
    const RawServer gone([](RawSocket&, int) {});
    port = gone.port();
  }
  SyncClient client(executor_, "http://127.0.0.1:" + std::to_string(port) + "/base");
  const auto answer = client.get("/health");
  EXPECT_EQ(answer.status().code(), Code::kUnavailable);
  EXPECT_EQ(answer.status().outcome(), Outcome::kNotSent);
  const std::string text = answer.status().message();
  EXPECT_NE(text.find("127.0.0.1:" + std::to_string(port) + "/base/health"), std::string::npos)
      << text;
  EXPECT_NE(text.find("refused"), std::string::npos) << text;
}

TEST_F(LimitsTest, AnUnknownNameIsNamed) {
  SyncClient client(executor_, "http://missing.test:80");
  const auto answer = client.get();
  EXPECT_EQ(answer.status().code(), Code::kUnavailable);
  EXPECT_EQ(answer.status().outcome(), Outcome::kNotSent);
  EXPECT_NE(answer.status().message().find("missing.test"), std::string::npos);
}

TEST_F(LimitsTest, CancelEndsARequestWithItsReason) {
  std::atomic<int> closed{0};
  std::atomic<int> received{0};
  RawServer server([&](RawSocket& socket, int) {
    socket.readMessage();
    ++received;
    if (socket.closedByPeer()) {
      ++closed;
    }
  });
  SyncClient client(executor_, server.url());
  Client::Id id = 0;
  auto answer = client.begin({"GET", "/x", nullptr, {}}, milliseconds(10000), &id);
  ASSERT_TRUE(eventually([&] { return received == 1; }));
  client.cancel(id, Status(Code::kAborted, "engine b failed first"));
  ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
  const Status status = answer.get().status();
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_EQ(status.outcome(), Outcome::kUnknown);
  EXPECT_EQ(status.message(), "engine b failed first");
  EXPECT_TRUE(eventually([&] { return closed == 1; }));
  client.cancel(id, Status(Code::kAborted, "again"));  // ended: nothing happens
  client.cancel(777, Status(Code::kAborted, "unknown"));
}

TEST_F(LimitsTest, CancelWhileConnectingSaysNotSent) {
  const BlackHole hole;
  SyncClient client(executor_, hole.url());
  Client::Id id = 0;
  auto answer = client.begin({"GET", "/x", nullptr, {}}, milliseconds(10000), &id);
  client.cancel(id, Status(Code::kCancelled, "stop"));
  ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(answer.get().status().outcome(), Outcome::kNotSent);
}

TEST_F(LimitsTest, SpeaksIpv6) {
  const BlackHole probe(AF_INET6);
  ASSERT_TRUE(probe.usable()) << "these tests need an IPv6 loopback, ::1";
  ServerOptions options;
  options.address = "::1";
  TestServer server(
      executor_,
      [](ServerRequest request, std::unique_ptr<Responder> responder) {
        ServerResponse response;
        response.body = request.host;
        responder->send(std::move(response));
      },
      options);
  const std::string authority = "[::1]:" + std::to_string(server.port());
  SyncClient client(executor_, "http://" + authority);
  const auto answer = client.get();
  ASSERT_TRUE(answer.ok()) << answer.status().toString();
  EXPECT_EQ(answer->body, authority);
}

TEST_F(LimitsTest, TriesEveryAddressOfAName) {
  RawServer server([](RawSocket& socket, int) {
    socket.readMessage();
    socket.write(okAnswer("{}"));
  });
  SyncClient client(executor_, "http://both.test:" + std::to_string(server.port()));
  const auto answer = client.get();
  EXPECT_TRUE(answer.ok()) << answer.status().toString();
}

TEST_F(LimitsTest, ADeadAddressDoesNotEatTheTimeOfAGoodOne) {
  std::unique_ptr<RawServer> server;
  std::unique_ptr<BlackHole> hole;
  // The system chose the port for IPv4 only: with IPv6 somebody else may have it.
  for (int attempt = 0; attempt < 20 && (hole == nullptr || !hole->usable()); ++attempt) {
    hole.reset();
    server = std::make_unique<RawServer>([](RawSocket& socket, int) {
      socket.readMessage();
      socket.write(okAnswer("{}"));
    });
    hole = std::make_unique<BlackHole>(AF_INET6, server->port());
  }
  ASSERT_TRUE(hole->usable()) << "these tests need an IPv6 loopback, ::1";
  SyncClient client(executor_, "http://both.test:" + std::to_string(server->port()));
  const auto answer = client.ask({"GET", "/x", nullptr, {}}, milliseconds(600));
  EXPECT_TRUE(answer.ok()) << answer.status().toString();
  // The second time the good one is known.
  const auto start = Clock::now();
  EXPECT_TRUE(client.ask({"GET", "/x", nullptr, {}}, milliseconds(20000)).ok());
  EXPECT_LT(Clock::now() - start, milliseconds(1500));
}

}  // namespace
}  // namespace pushrod::http::test
