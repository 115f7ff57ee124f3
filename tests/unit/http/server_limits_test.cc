// SPDX-License-Identifier: Apache-2.0
// Clients that are slow, greedy or broken.
#include "tests/unit/http/http_support.h"
#include "tests/unit/http/raw_peer.h"

namespace pushrod::http::test {
namespace {

const std::string kGet = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";

class ServerLimitsTest : public ::testing::Test {
 protected:
  TestServer serve(ServerOptions options, std::size_t answerBytes = 2) {
    return TestServer(
        executor_,
        [this, answerBytes](ServerRequest, std::unique_ptr<Responder> responder) {
          ++handled_;
          ServerResponse response;
          response.body = std::string(answerBytes, 'x');
          responder->send(std::move(response));
        },
        options);
  }

  /// The status line that `bytes` get; the connection must then be closed.
  static std::string refusalOf(const TestServer& server, const std::string& bytes) {
    RawSocket socket = RawSocket::connectTo(server.port());
    socket.write(bytes);
    const std::string answer = socket.readToEnd();
    return answer.substr(0, answer.find("\r\n"));
  }

  net::IoExecutor executor_;
  std::atomic<int> handled_{0};
};

TEST_F(ServerLimitsTest, RefusesGarbageAndGoesOn) {
  TestServer server = serve({});
  EXPECT_EQ(refusalOf(server, "\x16\x03\x01 tls hello\r\n\r\n"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(refusalOf(server, "GET /\r\n\r\n"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(refusalOf(server,
                      "POST / HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(refusalOf(server, "DELETE /x HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
  EXPECT_EQ(handled_, 0);
  RawSocket socket = RawSocket::connectTo(server.port());
  socket.write(kGet);
  EXPECT_EQ(socket.readMessage().substr(0, 15), "HTTP/1.1 200 OK");
}

TEST_F(ServerLimitsTest, RefusesWhatIsTooLarge) {
  ServerOptions options;
  options.maxHeader = 1024;
  options.maxBody = 1000;
  TestServer server = serve(options);
  EXPECT_EQ(refusalOf(server, "GET / HTTP/1.1\r\nX: " + std::string(5000, 'x') + "\r\n\r\n"),
            "HTTP/1.1 431 Request Header Fields Too Large");
  EXPECT_EQ(
      refusalOf(server, "POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n" + std::string(1001, 'b')),
      "HTTP/1.1 413 Payload Too Large");
  EXPECT_EQ(refusalOf(server,
                      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" +
                          std::string(1001, 'b') + "\r\n0\r\n\r\n"),
            "HTTP/1.1 413 Payload Too Large");
  EXPECT_EQ(handled_, 0);
}

TEST_F(ServerLimitsTest, CutsIdleAndSlowSenders) {
  ServerOptions options;
  options.idle = milliseconds(60);
  options.request = milliseconds(60);
  TestServer server = serve(options);
  RawSocket silent = RawSocket::connectTo(server.port());
  RawSocket slow = RawSocket::connectTo(server.port());
  slow.write("GET /x HT");
  RawSocket body = RawSocket::connectTo(server.port());
  body.write("POST /x HTTP/1.1\r\nContent-Length: 10\r\n\r\nab");
  RawSocket kept = RawSocket::connectTo(server.port());
  kept.write(kGet);
  EXPECT_NE(kept.readMessage(), "");
  for (RawSocket* socket : {&silent, &slow, &body, &kept}) {
    EXPECT_TRUE(socket->closedByPeer());
  }
  EXPECT_EQ(handled_, 1);
}

TEST_F(ServerLimitsTest, CutsAClientThatDoesNotRead) {
  ServerOptions options;
  options.request = milliseconds(100);
  TestServer server = serve(options, 64 << 20);
  RawSocket socket = RawSocket::connectTo(server.port());
  socket.write(kGet);
  ASSERT_TRUE(eventually([&] { return handled_ == 1; }));
  EXPECT_TRUE(eventually([&] { return server.connections() == 0; }));
}

TEST_F(ServerLimitsTest, HoldsTheNumberOfConnections) {
  ServerOptions options;
  options.maxConnections = 2;
  TestServer server = serve(options);
  RawSocket first = RawSocket::connectTo(server.port());
  RawSocket second = RawSocket::connectTo(server.port());
  ASSERT_TRUE(eventually([&] { return server.connections() == 2; }));
  RawSocket third = RawSocket::connectTo(server.port());
  EXPECT_EQ(third.readToEnd().substr(0, 12), "HTTP/1.1 503");
  first.close();
  ASSERT_TRUE(eventually([&] { return server.connections() == 1; }));
  RawSocket fourth = RawSocket::connectTo(server.port());
  fourth.write(kGet);
  EXPECT_EQ(fourth.readMessage().substr(0, 15), "HTTP/1.1 200 OK");
}

}  // namespace
}  // namespace pushrod::http::test
