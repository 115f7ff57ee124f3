// SPDX-License-Identifier: Apache-2.0
// Answers as they come from real servers, proxies and broken ones.
#include "tests/unit/http/http_support.h"
#include "tests/unit/http/raw_peer.h"

namespace pushrod::http::test {
namespace {

const std::string kOk = "HTTP/1.1 200 OK\r\n";
const std::string kChunked = kOk + "Transfer-Encoding: chunked\r\n\r\n";

class ReplyTest : public ::testing::Test {
 protected:
  /// One request to a server that answers `bytes` and closes.
  Result<Response> answerOf(const std::string& bytes, ClientOptions options = {}) {
    RawServer server([&](RawSocket& socket, int) {
      socket.readMessage();
      socket.write(bytes);
    });
    SyncClient client(executor_, server.url(), std::move(options));
    auto answer = client.get("/weight_info");
    accepted_ = server.accepted();
    return answer;
  }

  void expectUnusable(const std::string& bytes, ClientOptions options = {}) {
    const auto answer = answerOf(bytes, std::move(options));
    ASSERT_FALSE(answer.ok()) << bytes.substr(0, 200);
    EXPECT_EQ(answer.status().code(), Code::kUnavailable);
    EXPECT_EQ(answer.status().outcome(), Outcome::kUnknown);
    EXPECT_NE(answer.status().message().find("/weight_info"), std::string::npos);
    EXPECT_EQ(accepted_, 1) << "must not be asked again";
  }

  net::IoExecutor executor_;
  int accepted_ = 0;
};

TEST_F(ReplyTest, TakesValidChunks) {
  const auto answer = answerOf(kChunked +
                               "1\r\n{\r\n1;a=b\r\n\"\r\n1\r\nv\r\n1\r\n\"\r\n1\r\n:\r\n2\r\n12\r\n"
                               "1\r\n}\r\n0\r\nX-Trailer: 1\r\n\r\n");
  ASSERT_TRUE(answer.ok()) << answer.status().toString();
  EXPECT_EQ(answer->body, "{\"v\":12}");
}

TEST_F(ReplyTest, TakesNoCutAnswerForAWholeOne) {
  expectUnusable(kChunked + "9\r\n{\"v\": \"1");                      // inside a chunk
  expectUnusable(kChunked + "a\r\n{\"v\": \"12\"\r\n");               // between chunks
  expectUnusable(kChunked + "b\r\n{\"v\": \"12\"}\r\n");              // without the last chunk
  expectUnusable(kChunked + "b\r\n{\"v\": \"12\"}\r\n0\r\n");         // inside the last chunk
  expectUnusable(kOk + "Content-Length: 20\r\n\r\n{\"v\": \"12\"}");  // shorter than declared
  expectUnusable(kOk + "Content-Length: 2\r\n\r\n\"12\"");            // longer than declared
  expectUnusable(kOk + "Content-Type: application/json\r\n\r\n{}");   // ends nobody knows where
  expectUnusable(kOk + "Content-Len");                                // inside the header
  expectUnusable("");
}

TEST_F(ReplyTest, RefusesGarbage) {
  // Another protocol's first bytes: told apart, and without waiting for the end of a line.
  for (const std::string& other : {std::string("SSH-2.0-OpenSSH_9.2\r\n"),
                                   std::string("-ERR"),
                                   std::string("\x15\x03\x01\x00\x02\x02\x46", 7)}) {
    const auto answer = answerOf(other);
    EXPECT_EQ(answer.status().code(), Code::kFailedPrecondition) << answer.status().toString();
    EXPECT_EQ(answer.status().outcome(), Outcome::kUnknown);
  }
  expectUnusable("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef");
}

TEST_F(ReplyTest, PassesOtherBodiesAndStatusesThrough) {
  const std::string html = "<html>" + std::string(200 << 10, 'x') + "</html>";
  const auto page =
      answerOf("HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: " +
               std::to_string(html.size()) + "\r\n\r\n" + html);
  ASSERT_TRUE(page.ok()) << page.status().toString();
  EXPECT_EQ(page->status, 502);
  EXPECT_EQ(page->contentType, "text/html");
  EXPECT_EQ(page->body, html);
  const auto empty = answerOf(kOk + "Content-Length: 0\r\n\r\n");
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->body, "");
  const auto none = answerOf("HTTP/1.1 204 No Content\r\n\r\n");
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->status, 204);
  const auto bytes = answerOf("HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\n\xff\xfe");
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->body, "\xff\xfe");
}

TEST_F(ReplyTest, FollowsNoRedirect) {
  RawServer elsewhere([](RawSocket&, int) {});
  const auto answer = answerOf("HTTP/1.1 302 Found\r\nLocation: " + elsewhere.url() +
                               "/login\r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 302);
  EXPECT_EQ(elsewhere.accepted(), 0);
}

TEST_F(ReplyTest, WaitsThroughInterimAnswers) {
  const auto answer = answerOf("HTTP/1.1 100 Continue\r\n\r\n" + okAnswer("{}"));
  ASSERT_TRUE(answer.ok()) << answer.status().toString();
  EXPECT_EQ(answer->status, 200);
}

TEST_F(ReplyTest, HoldsItsLimits) {
  ClientOptions options;
  options.maxHeader = 2048;
  options.maxBody = 1000;
  expectUnusable(kOk + "X: " + std::string(4096, 'x') + "\r\nContent-Length: 0\r\n\r\n", options);
  expectUnusable(kOk + "Content-Length: 1001\r\n\r\n" + std::string(1001, 'b'), options);
  expectUnusable(kOk + "Content-Length: 99999999999999\r\n\r\n", options);
  expectUnusable(kChunked + "3e9\r\n" + std::string(1001, 'b') + "\r\n0\r\n\r\n", options);
  const auto exact =
      answerOf(kOk + "Content-Length: 1000\r\n\r\n" + std::string(1000, 'b'), options);
  EXPECT_TRUE(exact.ok());
}

TEST_F(ReplyTest, ReportsAResetInTheMiddle) {
  RawServer server([&](RawSocket& socket, int) {
    socket.readMessage();
    socket.write(kOk + "Content-Length: 10\r\n\r\nabc");
    socket.resetNow();
  });
  SyncClient client(executor_, server.url());
  const auto answer = client.get();
  EXPECT_EQ(answer.status().code(), Code::kUnavailable);
  EXPECT_EQ(answer.status().outcome(), Outcome::kUnknown);
}

TEST_F(ReplyTest, ReadsAnAnswerThatComesBeforeTheRequestWasTaken) {
  RawServer server([&](RawSocket& socket, int) {
    socket.readSome();
    socket.write(
        "HTTP/1.1 413 Payload Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    socket.readToEnd();
  });
  SyncClient client(executor_, server.url());
  const auto answer = client.post("/update_weights", std::string(4 << 20, 'b'));
  ASSERT_TRUE(answer.ok()) << answer.status().toString();
  EXPECT_EQ(answer->status, 413);
}

}  // namespace
}  // namespace pushrod::http::test
