// SPDX-License-Identifier: Apache-2.0
#include "net/stream.h"

#include <future>
#include <string>

#include <gtest/gtest.h>

#include "net/io_executor.h"
#include "net/listener.h"
#include "net/resolver.h"

namespace pushrod::net {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 10s;

Deadline soon(Duration limit = 5s) {
  return Deadline::after(SteadyClock(), limit);
}

/// A listener that echoes, and what a client needs; all of it lives on the control thread.
class StreamTest : public ::testing::Test {
 protected:
  template <typename F>
  auto onThread(F f) {
    std::promise<decltype(f())> promise;
    executor_.post([&] {
      if constexpr (std::is_void_v<decltype(f())>) {
        f();
        promise.set_value();
      } else {
        promise.set_value(f());
      }
    });
    return promise.get_future().get();
  }

  void SetUp() override {
    port_ = onThread([this] {
      auto opened = Listener::open(executor_, "127.0.0.1", 0, [this](auto stream) {
        served_ = std::move(stream);
        served_->start(
            {[this](std::span<const std::byte> bytes) {
               served_->write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
             },
             [this](const Status&) { served_.reset(); }});
      });
      listener_ = std::move(*opened);
      return listener_->port();
    });
  }

  void TearDown() override {
    onThread([this] {
      client_.reset();
      served_.reset();
      listener_.reset();
    });
  }

  Status connect(const std::string& address, std::uint16_t port, Deadline deadline) {
    std::promise<Status> connected;
    Stream::connect(
        executor_, address, port, deadline, [&](Result<std::unique_ptr<Stream>> stream) {
          if (stream) {
            client_ = std::move(*stream);
          }
          connected.set_value(stream.status());
        });
    return connected.get_future().get();
  }

  IoExecutor executor_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Stream> served_;
  std::unique_ptr<Stream> client_;
};

TEST_F(StreamTest, BytesComeBackInOrder) {
  ASSERT_TRUE(connect("127.0.0.1", port_, soon()));
  std::string sent;
  for (int i = 0; i < 200000; ++i) {
    sent += static_cast<char>('a' + i % 26);
  }
  std::string received;
  std::promise<void> all;
  onThread([&] {
    client_->start({[&](std::span<const std::byte> bytes) {
                      received.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                      if (received.size() == sent.size()) {
                        all.set_value();
                      }
                    },
                    {}});
    client_->write(sent.substr(0, 1));
    client_->write(sent.substr(1, 99999));
    client_->write(sent.substr(100000));
  });
  ASSERT_EQ(all.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(received, sent);
}

TEST_F(StreamTest, OtherSideClosingIsTold) {
  ASSERT_TRUE(connect("127.0.0.1", port_, soon()));
  std::promise<Status> closed;
  onThread([&] {
    client_->start({[&](std::span<const std::byte>) { served_.reset(); },
                    [&](const Status& reason) { closed.set_value(reason); }});
    client_->write("x");
  });
  const Status reason = closed.get_future().get();
  EXPECT_EQ(reason.code(), Code::kUnavailable);
}

TEST_F(StreamTest, HandlerMayDestroyTheStream) {
  ASSERT_TRUE(connect("127.0.0.1", port_, soon()));
  std::promise<void> gone;
  onThread([&] {
    client_->start({[&](std::span<const std::byte>) {
                      client_.reset();
                      gone.set_value();
                    },
                    {}});
    client_->write("x");
  });
  EXPECT_EQ(gone.get_future().wait_for(kPatience), std::future_status::ready);
}

TEST_F(StreamTest, FullQueueClosesTheStream) {
  // The other side reads nothing: it is a listener whose stream is never started.
  std::unique_ptr<Stream> silent;
  std::unique_ptr<Listener> deaf;
  const auto port = onThread([&] {
    deaf = std::move(*Listener::open(
        executor_, "127.0.0.1", 0, [&silent](auto stream) { silent = std::move(stream); }));
    return deaf->port();
  });
  ASSERT_TRUE(connect("127.0.0.1", port, soon()));
  std::promise<Status> closed;
  onThread([&] {
    client_->start({[](std::span<const std::byte>) {},
                    [&](const Status& reason) { closed.set_value(reason); }});
    for (std::size_t queued = 0; queued <= Stream::kMaxQueued; queued += 1 << 20) {
      client_->write(std::string(1 << 20, 'x'));
    }
  });
  const Status reason = closed.get_future().get();
  EXPECT_EQ(reason.code(), Code::kUnavailable);
  EXPECT_NE(reason.message().find("does not take"), std::string::npos);
  onThread([&] {
    silent.reset();
    deaf.reset();
  });
}

TEST_F(StreamTest, NobodyListensIsUnavailable) {
  const auto freed = onThread([this] {
    auto other = Listener::open(executor_, "127.0.0.1", 0, [](auto) {});
    return (*other)->port();
  });
  EXPECT_EQ(connect("127.0.0.1", freed, soon()).code(), Code::kUnavailable);
}

TEST_F(StreamTest, HostNameInsteadOfAddressIsRefused) {
  EXPECT_EQ(connect("localhost", port_, soon()).code(), Code::kInvalidArgument);
}

TEST_F(StreamTest, TakenPortIsUnavailable) {
  const Status status = onThread(
      [this] { return Listener::open(executor_, "127.0.0.1", port_, [](auto) {}).status(); });
  EXPECT_EQ(status.code(), Code::kUnavailable);
}

Result<std::vector<std::string>> lookUp(IoExecutor& executor, const std::string& host) {
  std::promise<Result<std::vector<std::string>>> found;
  resolve(executor, host, soon(20s), [&](Result<std::vector<std::string>> result) {
    found.set_value(std::move(result));
  });
  return found.get_future().get();
}

TEST_F(StreamTest, NumericAddressesResolveToThemselves) {
  EXPECT_EQ(lookUp(executor_, "10.1.2.3").value(), std::vector<std::string>{"10.1.2.3"});
  EXPECT_EQ(lookUp(executor_, "[::1]").value(), std::vector<std::string>{"::1"});
}

TEST_F(StreamTest, UnknownNameIsAFailureNotACrash) {
  const auto result = lookUp(executor_, "no-such-host.invalid");
  ASSERT_FALSE(result);
  EXPECT_NE(result.status().message().find("no-such-host.invalid"), std::string::npos);
}

}  // namespace
}  // namespace pushrod::net
