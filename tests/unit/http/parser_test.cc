// SPDX-License-Identifier: Apache-2.0
#include "http/parser.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace pushrod::http::detail {
namespace {

/// Feeds `text` in pieces of `step` bytes as a connection would, and returns the state.
template <typename Parser>
ParseState feedBy(Parser& parser, const std::string& text, std::size_t step) {
  std::string pending;
  for (std::size_t at = 0; at < text.size() && parser.state() == ParseState::kMore; at += step) {
    pending += text.substr(at, step);
    pending.erase(0, parser.feed(pending));
  }
  return parser.state();
}

ParseLimits small() {
  ParseLimits limits;
  limits.header = 1024;
  limits.body = 100;
  return limits;
}

TEST(ResponseParser, GivesTheSameForEveryCutOfTheInput) {
  const std::string text =
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
      "4;ext=1\r\n{\"a\"\r\n1\r\n:\r\n3;x;y=\"z\"\r\n12}\r\n0\r\nTrailer: t\r\n\r\n";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    ResponseParser parser(small(), false);
    ASSERT_EQ(feedBy(parser, text, step), ParseState::kDone) << step << ": " << parser.error();
    EXPECT_TRUE(parser.keepAlive());
    const Response response = parser.take();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.contentType, "application/json");
    EXPECT_EQ(response.body, "{\"a\":12}");
  }
}

TEST(ResponseParser, IsNotDoneBeforeTheLastByte) {
  const std::string text =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    ResponseParser parser(small(), false);
    EXPECT_EQ(feedBy(parser, text.substr(0, cut), 7), ParseState::kMore) << cut;
  }
}

TEST(ResponseParser, SkipsInterimAnswersButNotForEver) {
  const std::string interim = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
  const std::string last = "HTTP/1.1 204 No Content\r\n\r\n";
  ResponseParser parser(small(), false);
  EXPECT_EQ(feedBy(parser, interim + interim + last, 5), ParseState::kDone);
  EXPECT_EQ(parser.status(), 204);
  std::string endless;
  for (int i = 0; i < 100; ++i) {
    endless += interim;
  }
  ResponseParser other(small(), false);
  EXPECT_EQ(feedBy(other, endless, 1000), ParseState::kBad);
}

TEST(ResponseParser, HoldsItsLimits) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  ResponseParser header(small(), false);
  EXPECT_EQ(feedBy(header, ok + "X: " + std::string(2000, 'x') + "\r\n\r\n", 64),
            ParseState::kHeaderTooLarge);
  ResponseParser declared(small(), false);
  EXPECT_EQ(feedBy(declared, ok + "Content-Length: 101\r\n\r\n", 64), ParseState::kBodyTooLarge);
  ResponseParser chunked(small(), false);
  EXPECT_EQ(feedBy(chunked,
                   ok + "Transfer-Encoding: chunked\r\n\r\n64\r\n" + std::string(100, 'b') +
                       "\r\n1\r\nb\r\n0\r\n\r\n",
                   64),
            ParseState::kBodyTooLarge);
  ResponseParser extension(small(), false);
  EXPECT_EQ(
      feedBy(extension, ok + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(5000, 'e'), 64),
      ParseState::kHeaderTooLarge);
}

TEST(ResponseParser, RefusesAnAnswerWhoseEndCannotBeSeen) {
  ResponseParser parser(small(), false);
  EXPECT_EQ(feedBy(parser, "HTTP/1.1 200 OK\r\n\r\n{}", 64), ParseState::kBad);
  ResponseParser toHead(small(), true);
  EXPECT_EQ(feedBy(toHead, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 64), ParseState::kDone);
}

TEST(ResponseParser, RefusesWhatIsNotHttp) {
  for (const char* text : {"SSH-2.0-OpenSSH_9\r\n\r\n",
                           "HTTP/1.1 abc OK\r\n\r\n",
                           "HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n",
                           "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    ResponseParser parser(small(), false);
    EXPECT_EQ(feedBy(parser, text, 64), ParseState::kBad) << text;
    EXPECT_NE(parser.error(), "");
  }
}

TEST(RequestParser, SplitsTheTarget) {
  RequestParser parser(small());
  ASSERT_EQ(feedBy(parser,
                   "POST /a/b?c=d%20e HTTP/1.1\r\nHost: h:1\r\nContent-Type: application/json\r\n"
                   "Authorization: Bearer t\r\nContent-Length: 2\r\n\r\n{}",
                   9),
            ParseState::kDone);
  const ServerRequest request = parser.take();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/a/b");
  EXPECT_EQ(request.query, "c=d%20e");
  EXPECT_EQ(request.host, "h:1");
  EXPECT_EQ(request.contentType, "application/json");
  EXPECT_EQ(request.authorization, "Bearer t");
  EXPECT_EQ(request.body, "{}");
}

TEST(RequestParser, ClosesForOldClientsAndOnRequest) {
  RequestParser old(small());
  ASSERT_EQ(feedBy(old, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 64), ParseState::kDone);
  EXPECT_FALSE(old.keepAlive());
  RequestParser asked(small());
  ASSERT_EQ(feedBy(asked, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 64), ParseState::kDone);
  EXPECT_FALSE(asked.keepAlive());
  RequestParser kept(small());
  ASSERT_EQ(feedBy(kept, "GET / HTTP/1.1\r\n\r\n", 64), ParseState::kDone);
  EXPECT_TRUE(kept.keepAlive());
}

/// Damages a message in a few places, the same for the same seed.
std::string damaged(std::string text, std::uint64_t seed) {
  const auto next = [&seed] {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>(seed >> 33);
  };
  for (std::size_t count = next() % 4 + 1; count > 0; --count) {
    const std::size_t at = next() % text.size();
    switch (next() % 3) {
      case 0:
        text[at] = static_cast<char>(next());
        break;
      case 1:
        text.insert(at, text.substr(next() % text.size(), next() % 20));
        break;
      default:
        text.erase(at, next() % 5);
        text += '.';
    }
  }
  return text;
}

TEST(Parsers, EndDamagedInputWithinTheirLimits) {
  const std::string answer =
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
      "4;ext=1\r\nabcd\r\n1\r\n:\r\n0\r\nTrailer: t\r\n\r\n";
  const std::string request =
      "POST /a?b HTTP/1.1\r\nHost: h:1\r\nContent-Length: 20\r\n\r\n{\"a\": [1, 2, 3, 4, 5]}";
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    ResponseParser response(small(), false);
    if (feedBy(response, damaged(answer, seed), seed % 40 + 1) == ParseState::kDone) {
      EXPECT_LE(response.take().body.size(), small().body);
    }
    RequestParser parser(small());
    if (feedBy(parser, damaged(request, seed), seed % 40 + 1) == ParseState::kDone) {
      EXPECT_LE(parser.take().body.size(), small().body);
    }
  }
}

TEST(ReasonPhrase, IsTheUsualOne) {
  EXPECT_EQ(reasonPhrase(404), "Not Found");
  EXPECT_EQ(reasonPhrase(200), "OK");
}

}  // namespace
}  // namespace pushrod::http::detail
