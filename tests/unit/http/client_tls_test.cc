// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include "http/tls.h"
#include "tests/unit/http/http_support.h"
#include "tests/unit/http/raw_peer.h"
#include "tests/unit/http/test_certificate.h"

namespace pushrod::http::test {
namespace {

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() : context_(SSL_CTX_new(TLS_server_method()), SSL_CTX_free) {
    SSL_CTX_use_certificate_file(context_.get(), made_.certificate().c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context_.get(), made_.key().c_str(), SSL_FILETYPE_PEM);
  }

  /// Serves TLS on an accepted connection: answers `answer` to each request until it ends.
  void serve(RawSocket& socket, const std::string& answer) {
    const std::unique_ptr<SSL, decltype(&SSL_free)> tls(SSL_new(context_.get()), SSL_free);
    SSL_set_fd(tls.get(), socket.descriptor());
    if (SSL_accept(tls.get()) != 1) {
      ++refused_;
      return;
    }
    ++accepted_;
    std::string request;
    std::string piece(4096, '\0');
    for (;;) {
      const int got = SSL_read(tls.get(), piece.data(), static_cast<int>(piece.size()));
      if (got <= 0) {
        return;
      }
      request.append(piece, 0, static_cast<std::size_t>(got));
      if (request.find("\r\n\r\n") != std::string::npos) {
        request.clear();
        SSL_write(tls.get(), answer.data(), static_cast<int>(answer.size()));
      }
    }
  }

  [[nodiscard]] ClientOptions trusting() const {
    ClientOptions options;
    options.caFile = made_.certificate();
    return options;
  }

  static std::string urlOf(const RawServer& server, const std::string& host) {
    return "https://" + host + ":" + std::to_string(server.port());
  }

  net::IoExecutor executor_;
  TestCertificate made_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::atomic<int> accepted_{0};
  std::atomic<int> refused_{0};
};

TEST_F(TlsTest, TalksToATrustedServerAndKeepsTheConnection) {
  RawServer server([&](RawSocket& socket, int) { serve(socket, okAnswer("{}")); });
  SyncClient client(executor_, urlOf(server, "127.0.0.1"), trusting());
  for (int i = 0; i < 3; ++i) {
    const auto answer = client.get();
    ASSERT_TRUE(answer.ok()) << answer.status().toString();
    EXPECT_EQ(answer->body, "{}");
  }
  EXPECT_EQ(accepted_, 1);
}

TEST_F(TlsTest, RefusesAnUntrustedServerUnlessToldOtherwise) {
  RawServer server([&](RawSocket& socket, int) { serve(socket, okAnswer("{}")); });
  {
    SyncClient client(executor_, urlOf(server, "127.0.0.1"));
    const auto answer = client.get();
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.status().code(), Code::kUnavailable);
    EXPECT_EQ(answer.status().outcome(), Outcome::kNotSent);
    EXPECT_NE(answer.status().message().find("TLS"), std::string::npos);
  }
  ClientOptions options;
  options.verifyTls = false;
  SyncClient client(executor_, urlOf(server, "127.0.0.1"), options);
  EXPECT_TRUE(client.get().ok());
}

TEST_F(TlsTest, RefusesACertificateForAnotherName) {
  RawServer server([&](RawSocket& socket, int) { serve(socket, okAnswer("{}")); });
  // The same machine, under an address that the certificate does not name.
  SyncClient client(executor_, urlOf(server, "[::ffff:127.0.0.1]"), trusting());
  const auto answer = client.get();
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.status().outcome(), Outcome::kNotSent);
  EXPECT_EQ(accepted_, 0);
}

TEST_F(TlsTest, TakesNoCutAnswerForAWholeOne) {
  RawServer server([&](RawSocket& socket, int) {
    serve(socket, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\n{}");
  });
  SyncClient client(executor_, urlOf(server, "127.0.0.1"), trusting());
  const auto answer = client.ask({"GET", "/x", nullptr, Repeat::kSafe}, milliseconds(300));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.status().outcome(), Outcome::kUnknown);
}

TEST_F(TlsTest, DeadlineCoversTheHandshake) {
  RawServer server([&](RawSocket& socket, int) { socket.closedByPeer(); });
  SyncClient client(executor_, urlOf(server, "127.0.0.1"), trusting());
  const auto answer = client.ask({"GET", "/x", nullptr, {}}, milliseconds(150));
  EXPECT_EQ(answer.status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(answer.status().outcome(), Outcome::kNotSent);
}

TEST_F(TlsTest, GoesThroughAProxyByConnect) {
  std::string asked;
  RawServer proxy([&](RawSocket& socket, int) {
    asked = socket.readMessage();
    socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
    serve(socket, okAnswer("{\"a\": 1}"));
  });
  {
    ClientOptions options = trusting();
    options.proxy = "127.0.0.1:" + std::to_string(proxy.port());
    options.bearerToken = "secret";
    SyncClient client(executor_, "https://localhost:8443", options);
    const auto answer = client.get();
    ASSERT_TRUE(answer.ok()) << answer.status().toString();
    EXPECT_EQ(answer->body, "{\"a\": 1}");
  }
  EXPECT_EQ(asked.substr(0, asked.find("\r\n")), "CONNECT localhost:8443 HTTP/1.1");
  EXPECT_EQ(asked.find("secret"), std::string::npos) << "the proxy must not learn the token";
}

TEST_F(TlsTest, NamesAProxyThatRefuses) {
  RawServer proxy([](RawSocket& socket, int) {
    socket.readMessage();
    socket.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  });
  ClientOptions options = trusting();
  options.proxy = "127.0.0.1:" + std::to_string(proxy.port());
  SyncClient client(executor_, "https://localhost:8443", options);
  const auto answer = client.get();
  EXPECT_EQ(answer.status().outcome(), Outcome::kNotSent);
  EXPECT_NE(answer.status().message().find("403"), std::string::npos);
}

TEST_F(TlsTest, NamesFilesThatCannotBeUsed) {
  onThread(executor_, [&] {
    const Url url = *Url::parse("https://localhost");
    ClientOptions options;
    options.caFile = "/nonexistent/ca.pem";
    const auto made = Client::create(executor_, url, options);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
    EXPECT_NE(made.status().message().find("/nonexistent/ca.pem"), std::string::npos);
    options = trusting();
    options.certFile = made_.certificate();
    EXPECT_FALSE(Client::create(executor_, url, options).ok());
    options.keyFile = made_.key();
    EXPECT_TRUE(Client::create(executor_, url, options).ok());
  });
}

TEST(TlsFiles, WhatIsNoRegularFileOfASaneSizeIsNeverRead) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "tls-files";
  std::filesystem::create_directories(folder);
  const std::string pipe = folder / "pipe";
  const std::string large = folder / "large";
  ::mkfifo(pipe.c_str(), 0600);
  std::ofstream(large).put('x');
  std::filesystem::resize_file(large, (16U << 20U) + 1);
  // Reading any of the first three would wait for ever or never end.
  for (const std::string& path : {pipe, std::string("/dev/zero"), large, folder.string()}) {
    const TestCertificate made;
    for (const TlsFiles& files : {TlsFiles{.ca = path},
                                  TlsFiles{.cert = path, .key = made.key()},
                                  TlsFiles{.cert = made.certificate(), .key = path}}) {
      const Status status = checkTlsFiles(files);
      EXPECT_EQ(status.code(), Code::kInvalidArgument) << path;
      EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
    }
  }
  std::filesystem::remove_all(folder);
}

TEST(TlsFiles, ClientsOfTheSameFilesShareWhatIsReadAndANewFileIsRead) {
  const TestCertificate made;
  const auto first = makeTlsContext({.ca = made.certificate()});
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(*makeTlsContext({.ca = made.certificate()}), *first);
  EXPECT_NE(*makeTlsContext({.ca = made.certificate(), .verify = false}), *first);
  const std::string copy = made.certificate() + ".copy";
  std::filesystem::copy_file(made.certificate(), copy);
  std::filesystem::rename(copy, made.certificate());
  EXPECT_NE(*makeTlsContext({.ca = made.certificate()}), *first);
}

}  // namespace
}  // namespace pushrod::http::test
