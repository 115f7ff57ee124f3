// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "heard.h"
#include "local_job.h"
#include "ranks/control_call.h"
#include "ranks/interrupt.h"
#include "ranks/link.h"

namespace pushrod::ranks {

inline constexpr Duration kLong{20000};
inline constexpr std::uint64_t kEpoch = 4;
inline const VoteKey kKey{kEpoch, 1, Phase::kStream, 2};

/// The links of a job too large for a star, on one control thread.
class LinkTreeTest : public ::testing::Test {
 protected:
  // Rank 1 has 17 to 32 below it, rank 2 has 33 to 48, rank 17 has 273 to 288.
  static constexpr int kInner = 1;
  static constexpr int kLeaf = 40;
  static constexpr int kLeafOfInner = 20;

  template <typename F>
  auto onThread(F f) {
    auto result = onControlThread(executor_, in(kPatience), f);
    EXPECT_TRUE(result.has_value());
    return *result;
  }

  ~LinkTreeTest() override {
    onThread([this] {
      links_.clear();
      return true;
    });
  }

  TreePlace place(int rank) const { return TreePlace::of(rank, size_, Link::fanOut(size_)); }

  Link& link(int rank) { return *links_[static_cast<std::size_t>(rank)]; }

  Heard& heard(int rank) { return *heard_[static_cast<std::size_t>(rank)]; }

  /// All links, those with ranks below listening; `absent` has none.
  void create(int size, Duration agreement, int absent = -1) {
    size_ = size;
    for (int rank = 0; rank < size; ++rank) {
      heard_.push_back(std::make_unique<Heard>());
    }
    onThread([this, size, agreement, absent] {
      for (int rank = 0; rank < size; ++rank) {
        links_.push_back(rank == absent ? nullptr
                                        : std::make_unique<Link>(
                                              executor_, LinkOptions{rank, size, agreement, {}}));
        if (rank != absent) {
          link(rank).setListener(&heard(rank));
        }
        if (rank != absent && !place(rank).children.empty()) {
          EXPECT_TRUE(link(rank).listen("127.0.0.1", "token"));
          ports_[rank] = link(rank).port();
        }
      }
      return true;
    });
  }

  /// Begins the join of one rank, on the control thread.
  void beginJoin(int rank) { beginJoin(rank, link(rank)); }

  void beginJoin(int rank, Link& each) {
    const LinkAddress above{"127.0.0.1", ports_[place(rank).parent]};
    const LinkAddress rankZero{"127.0.0.1", ports_[0]};
    each.join(above, rankZero, "token", kEpoch, in(kPatience), [rank](const Status& status) {
      EXPECT_TRUE(status) << rank << ": " << status.toString();
    });
  }

  void beginJoins(int except) {
    onThread([this, except] {
      for (int rank = size_ - 1; rank > 0; --rank) {
        if (rank != except) {
          beginJoin(rank);
        }
      }
      return true;
    });
  }

  /// All join, those far from rank 0 first, so that inner ranks have ranks below before they join.
  void connect(int size, Duration agreement = kLong) {
    create(size, agreement);
    beginJoins(-1);
    awaitAll();
  }

  void awaitAll() {
    EXPECT_TRUE(eventually([this] { return link(0).missing().empty(); }));
  }

  /// Asks on the control thread until it is so.
  bool eventually(const std::function<bool()>& condition) {
    Interrupt nobody;
    const Deadline deadline = in(kPatience);
    while (!onThread(condition)) {
      if (deadline.passed(SteadyClock())) {
        return false;
      }
      (void)nobody.waitFor(Duration{5});
    }
    return true;
  }

  void die(int rank) {
    onThread([this, rank] {
      links_[static_cast<std::size_t>(rank)].reset();
      return true;
    });
  }

  void stop(int rank, const VoteKey& key, const std::string& text) {
    onThread([&] {
      link(rank).stop(key, Status(Code::kInternal, text));
      return true;
    });
  }

  void publish(const std::string& text) {
    onThread([&] {
      Verdict verdict;
      verdict.first = Status(Code::kAborted, text);
      link(0).publishVerdict(kEpoch, verdict);
      return true;
    });
  }

  /// Every living rank but `except` hears `text`, and before it nothing else.
  void expectFirstHeard(const std::string& text, int except = -1) {
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == except || !links_[static_cast<std::size_t>(rank)]) {
        continue;
      }
      EXPECT_TRUE(heard(rank).await(text)) << rank;
      EXPECT_EQ(heard(rank).texts().front(), text) << rank;
    }
  }

  net::IoExecutor executor_;
  int size_ = 0;
  std::map<int, std::uint16_t> ports_;  ///< of the ranks that listen
  std::vector<std::unique_ptr<Heard>> heard_;
  std::vector<std::unique_ptr<Link>> links_;
};

}  // namespace pushrod::ranks
