// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "heard.h"
#include "local_job.h"
#include "ranks/control_call.h"
#include "ranks/link.h"

namespace pushrod::ranks {

/// One rank's link with its own control thread.
class Node {
 public:
  template <typename F>
  auto onThread(F f) {
    auto result = onControlThread(executor_, in(kPatience), f);
    EXPECT_TRUE(result.has_value());
    return *result;
  }

  Node(int rank, int size, Duration agreement) {
    link_ = std::make_unique<Link>(executor_, LinkOptions{rank, size, agreement, nullptr});
    onThread([this] {
      link_->setListener(&heard);
      return true;
    });
  }

  ~Node() { destroyOnControlThread(executor_, link_); }

  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  std::uint16_t listen(const std::string& token) {
    return onThread([this, token] {
      EXPECT_TRUE(link_->listen("127.0.0.1", token));
      return link_->port();
    });
  }

  Status join(std::uint16_t port,
              const std::string& token,
              std::uint64_t epoch = 1,
              Duration limit = kPatience) {
    auto promise = std::make_shared<std::promise<Status>>();
    auto future = promise->get_future();
    executor_.post([this, port, token, epoch, limit, promise] {
      const LinkAddress rankZero{"127.0.0.1", port};
      link_->join(rankZero, rankZero, token, epoch, in(limit), [promise](const Status& status) {
        promise->set_value(status);
      });
    });
    return future.get();
  }

  void position(const VoteKey& key) {
    onThread([this, key] {
      link_->setPosition(key);
      return true;
    });
  }

  void stop(const VoteKey& key, const std::string& text) {
    onThread([this, key, text] {
      link_->stop(key, Status(Code::kInternal, text));
      return true;
    });
  }

  Link& link() { return *link_; }

  net::IoExecutor& executor() { return executor_; }

  Heard heard;

 private:
  net::IoExecutor executor_;
  std::unique_ptr<Link> link_;
};

inline constexpr Duration kLong{20000};
inline const VoteKey kKey{4, 1, Phase::kStream, 2};

/// Rank 0 and some others, all connected.
class LinkTest : public ::testing::Test {
 protected:
  void connect(int size, Duration agreement = kLong) {
    for (int rank = 0; rank < size; ++rank) {
      nodes_.push_back(std::make_unique<Node>(rank, size, agreement));
    }
    port_ = nodes_[0]->listen("token");
    for (int rank = 1; rank < size; ++rank) {
      ASSERT_TRUE(node(rank).join(port_, "token", 4));
    }
    EXPECT_TRUE(node(0).onThread([this] { return node(0).link().missing(); }).empty());
  }

  Node& node(int rank) { return *nodes_[static_cast<std::size_t>(rank)]; }

  std::vector<std::unique_ptr<Node>> nodes_;
  std::uint16_t port_ = 0;
};

}  // namespace pushrod::ranks
