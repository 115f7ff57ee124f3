// SPDX-License-Identifier: Apache-2.0
#include "ranks/store.h"

#include <arpa/inet.h>
#include <array>
#include <csignal>
#include <future>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "local_job.h"
#include "net/resolver.h"
#include "ranks/control_call.h"
#include "ranks/file_store.h"
#include "ranks/local_address.h"
#include "ranks/redis_store.h"
#include "ranks/rendezvous.h"
#include "ranks/tcp_store.h"
#include "ranks/tcp_store_server.h"

namespace pushrod::ranks {
namespace {

using Values = std::vector<std::optional<std::string>>;

/// What every store promises.
void checkContract(Store& store, bool erasesBelow) {
  const Deadline deadline = in(kPatience);
  EXPECT_EQ(store.get({"a/x"}, deadline).value(), Values{std::nullopt});
  ASSERT_TRUE(store.set("a/x", "one", deadline));
  ASSERT_TRUE(store.set("a/x", "two", deadline)) << "a second value replaces the first";
  const std::string binary("\0\n\xff", 3);
  ASSERT_TRUE(store.set("a/../odd key%", binary, deadline));
  const Values expected = {"two", std::nullopt, binary};
  EXPECT_EQ(store.get({"a/x", "a/y", "a/../odd key%"}, deadline).value(), expected);
  EXPECT_EQ(store.get({}, deadline).value(), Values{});
  const std::string large(Store::kMaxValue, 'l');
  ASSERT_TRUE(store.set("large", large, deadline));
  EXPECT_EQ(store.get({"large"}, deadline).value(), Values{large});
  ASSERT_TRUE(store.set("empty", "", deadline));
  EXPECT_EQ(store.get({"empty"}, deadline).value(), Values{""});
  ASSERT_TRUE(store.erase({"large", "never was"}, deadline));
  EXPECT_EQ(store.get({"large"}, deadline).value(), Values{std::nullopt});
  ASSERT_TRUE(store.eraseBelow("a", deadline));
  if (erasesBelow) {
    EXPECT_EQ(store.get({"a/x"}, deadline).value(), Values{std::nullopt});
  }
  EXPECT_EQ(store.get({"empty"}, deadline).value(), Values{""});
}

void checkWaits(Store& store) {
  Interrupt interrupt;
  EXPECT_EQ(awaitKey(store, "late", interrupt, in(Duration{60})).status().code(),
            Code::kDeadlineExceeded);
  interrupt.set(Status(Code::kCancelled, "enough"));
  EXPECT_EQ(awaitKey(store, "late", interrupt, in(kPatience)).status().code(), Code::kCancelled);
  interrupt.clear();
  ASSERT_TRUE(store.set("late", "here", in(kPatience)));
  EXPECT_EQ(awaitKey(store, "late", interrupt, in(kPatience)).value(), "here");
}

TEST(FileStoreTest, KeepsTheContract) {
  const TemporaryFolder folder;
  auto store = FileStore::open(folder.path() + "/deep/below");
  ASSERT_TRUE(store);
  checkContract(**store, true);
  checkWaits(**store);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/odd key%")) << "a key left the folder";
}

TEST(FileStoreTest, UnusableFolderIsToldAtOnce) {
  const auto store = FileStore::open("/proc/no/such/folder");
  ASSERT_FALSE(store);
  EXPECT_EQ(store.status().code(), Code::kUnavailable);
}

/// A server with what reaches it.
class TcpStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { serve(0); }

  void TearDown() override { destroyOnControlThread(executor_, server_); }

  void serve(std::uint16_t port) {
    auto opened = onControlThread(executor_, in(kPatience), [this, port] {
      return TcpStoreServer::open(executor_, "127.0.0.1", port);
    });
    ASSERT_TRUE(opened && *opened);
    server_ = std::move(**opened);
    port_ = server_->port();
  }

  [[nodiscard]] TcpStore client() const {
    return TcpStore({"127.0.0.1"}, port_, "tcp://127.0.0.1:" + std::to_string(port_));
  }

  net::IoExecutor executor_;
  std::unique_ptr<TcpStoreServer> server_;
  std::uint16_t port_ = 0;
};

TEST_F(TcpStoreTest, KeepsTheContract) {
  TcpStore store = client();
  checkContract(store, false);
  checkWaits(store);
}

TEST_F(TcpStoreTest, ClientsSeeEachOther) {
  TcpStore one = client();
  TcpStore two = client();
  ASSERT_TRUE(one.set("k", "v", in(kPatience)));
  EXPECT_EQ(two.get({"k"}, in(kPatience)).value(), Values{"v"});
}

TEST_F(TcpStoreTest, ManyKeysAtOnce) {
  TcpStore store = client();
  std::vector<std::string> keys;
  for (int i = 0; i < 1000; ++i) {
    keys.push_back("key/" + std::to_string(i));
  }
  ASSERT_TRUE(store.set(keys.back(), "last", in(kPatience)));
  const auto values = store.get(keys, in(kPatience));
  ASSERT_TRUE(values);
  ASSERT_EQ(values->size(), keys.size());
  EXPECT_EQ(values->back(), "last");
  EXPECT_EQ(values->front(), std::nullopt);
}

TEST_F(TcpStoreTest, LostConnectionIsMadeAnew) {
  TcpStore store = client();
  ASSERT_TRUE(store.set("k", "v", in(kPatience)));
  destroyOnControlThread(executor_, server_);
  EXPECT_EQ(store.set("k", "v", in(kPatience)).code(), Code::kUnavailable);
  serve(port_);
  EXPECT_TRUE(store.set("k", "v", in(kPatience)));
}

TEST_F(TcpStoreTest, GarbageClosesOnlyItsConnection) {
  TcpStore store = client();
  ASSERT_TRUE(store.set("k", "v", in(kPatience)));
  const auto target = socketAddress("127.0.0.1", port_);
  const int raw = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::connect(raw, target->get(), target->size()), 0);
  const std::string garbage = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_EQ(::send(raw, garbage.data(), garbage.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(garbage.size()));
  std::array<char, 256> buffer{};
  ssize_t got = 1;
  while (got > 0) {
    got = ::recv(raw, buffer.data(), buffer.size(), 0);  // the greeting, then the end
  }
  ::close(raw);
  EXPECT_EQ(store.get({"k"}, in(kPatience)).value(), Values{"v"});
}

/// Listens and says nothing, or something else than a store.
class Stranger {
 public:
  explicit Stranger(std::string says) : says_(std::move(says)) {
    auto opened = onControlThread(executor_, in(kPatience), [this] {
      return net::Listener::open(executor_, "127.0.0.1", 0, [this](auto stream) {
        stream->write(says_);
        streams_.push_back(std::move(stream));
      });
    });
    listener_ = std::move(**opened);
    port_ = listener_->port();
  }

  ~Stranger() {
    onControlThread(executor_, in(kPatience), [this] {
      streams_.clear();
      listener_.reset();
      return true;
    });
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  net::IoExecutor executor_;
  std::string says_;
  std::vector<std::unique_ptr<net::Stream>> streams_;
  std::unique_ptr<net::Listener> listener_;
  std::uint16_t port_ = 0;
};

TEST(TcpStoreClientTest, SilentServerEndsByTheDeadline) {
  const Stranger stranger("");
  TcpStore store({"127.0.0.1"}, stranger.port(), "tcp://x");
  EXPECT_FALSE(store.set("k", "v", in(Duration{100})));
}

TEST(TcpStoreClientTest, OtherProgramIsNamedAsSuch) {
  const Stranger stranger("HTTP/1.1 400 Bad Request\r\n\r\n");
  TcpStore store({"127.0.0.1"}, stranger.port(), "tcp://x");
  EXPECT_NE(store.set("k", "v", in(kPatience)).message().find("another program"),
            std::string::npos);
}

/// A Redis server of the test's own.
class RedisServer {
 public:
  RedisServer() {
    port_ = static_cast<std::uint16_t>(20000 + ::getpid() % 20000);
    child_ = ::fork();
    if (child_ == 0) {
      const std::string port = std::to_string(port_);
      ::execlp("redis-server",
               "redis-server",
               "--port",
               port.c_str(),
               "--bind",
               "127.0.0.1",
               "--save",
               "",
               "--appendonly",
               "no",
               "--loglevel",
               "warning",
               nullptr);
      ::_exit(127);
    }
  }

  ~RedisServer() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }

  [[nodiscard]] bool absent() const { return ::waitpid(child_, nullptr, WNOHANG) == child_; }

 private:
  pid_t child_ = -1;
  std::uint16_t port_ = 0;
};

TEST(RedisStoreTest, KeepsTheContract) {
  ASSERT_EQ(std::system("command -v redis-server > /dev/null"), 0)
      << "install redis-server, as scripts/test does";
  const RedisServer server;
  RedisStore store({"127.0.0.1"}, server.port(), "redis://127.0.0.1");
  Interrupt interrupt;
  PollPause pause;
  while (!store.connect(in(Duration{1000})).ok()) {
    ASSERT_TRUE(pause.wait(interrupt, in(kPatience)));
  }
  checkContract(store, false);
  checkWaits(store);
}

TEST(RedisStoreTest, SilentServerEndsByTheDeadline) {
  const Stranger stranger("");
  RedisStore store({"127.0.0.1"}, stranger.port(), "redis://x");
  EXPECT_EQ(store.set("k", "v", in(Duration{100})).code(), Code::kDeadlineExceeded);
}

Status meetAt(const std::string& store, int rank, Duration limit) {
  net::IoExecutor executor;
  RendezvousOptions options;
  options.rank = *Rank::of(rank, 2);
  options.config.store = store;
  options.job = "test";
  auto rendezvous = Rendezvous::create(executor, std::move(options));
  if (!rendezvous) {
    return rendezvous.status();
  }
  Interrupt interrupt;
  return (*rendezvous)->meet(interrupt, in(limit));
}

TEST(RendezvousTest, NobodyOwnsTheStoresAddress) {
  // 192.0.2.0/24 is for documents: nobody has it.
  for (const int rank : {0, 1}) {
    const Status status = meetAt("tcp://192.0.2.1:29501", rank, Duration{200});
    EXPECT_EQ(status.code(), Code::kUnavailable);
    EXPECT_NE(status.message().find("no rank serves"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("rank 0"), std::string::npos);
    EXPECT_NE(status.message().find(hostName()), std::string::npos);
  }
}

TEST(RendezvousTest, UnresolvableStoreIsAFailureNotACrash) {
  const Status status = meetAt("tcp://no-such-host.invalid:29501", 0, kPatience);
  EXPECT_EQ(status.code(), Code::kUnavailable);
}

TEST(RendezvousTest, UnknownInterfaceIsRefusedBeforeAnyContact) {
  net::IoExecutor executor;
  RendezvousOptions options;
  options.rank = *Rank::of(0, 2);
  options.config.store = "file:///tmp";
  options.config.interface = "no-such-if0";
  const auto rendezvous = Rendezvous::create(executor, std::move(options));
  ASSERT_FALSE(rendezvous);
  EXPECT_EQ(rendezvous.status().code(), Code::kInvalidArgument);
  EXPECT_NE(rendezvous.status().message().find("no-such-if0"), std::string::npos);
}

TEST(RendezvousTest, RanksOfOneHostMeetAtATcpStoreServedByOneOfThem) {
  const std::uint16_t port = [] {
    const Stranger stranger("");  // the system's choice, free again afterwards
    return stranger.port();
  }();
  const std::string store = "tcp://127.0.0.1:" + std::to_string(port);
  std::vector<std::unique_ptr<Member>> members;
  for (int rank = 0; rank < 3; ++rank) {
    RanksOptions options = localOptions(rank, 3, "");
    options.config.store = store;
    members.push_back(std::make_unique<Member>(std::move(options)));
  }
  std::vector<std::future<Status>> opened;
  for (const auto& member : members) {
    opened.push_back(
        std::async(std::launch::async, [&] { return member->agreement().open(1, in(kPatience)); }));
  }
  for (auto& each : opened) {
    const Status status = each.get();
    EXPECT_TRUE(status) << status.toString();
  }
}

}  // namespace
}  // namespace pushrod::ranks
