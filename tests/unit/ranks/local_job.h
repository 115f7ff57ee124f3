// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "net/io_executor.h"
#include "ranks/meeting.h"

namespace pushrod::ranks {

/// A folder that goes with its object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "pushrod-ranks-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }

  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Deadline in(Duration limit) {
  return Deadline::after(SteadyClock(), limit);
}

/// Long enough for any machine; only a failing test waits for it.
inline constexpr Duration kPatience{20000};

inline RanksOptions localOptions(int rank, int size, const std::string& folder) {
  RanksOptions options;
  options.rank = *Rank::of(rank, size);
  options.job = "test";
  options.privateDirectory = folder;
  options.connect = kPatience;
  options.agreement = Duration{10000};
  return options;
}

/// One rank with its own control thread.
struct Member {
  explicit Member(RanksOptions options) {
    auto created = Ranks::create(executor, std::move(options), nullptr);
    EXPECT_TRUE(created) << created.status().toString();
    ranks = std::move(*created);
  }

  Agreement& agreement() const { return ranks->agreement(); }

  net::IoExecutor executor;
  std::unique_ptr<Ranks> ranks;
};

/// Ranks of one job as threads of this process.
class LocalJob {
 public:
  explicit LocalJob(int size, Duration agreement = Duration{10000}) {
    for (int rank = 0; rank < size; ++rank) {
      RanksOptions options = localOptions(rank, size, folder_.path());
      options.agreement = agreement;
      members_.push_back(std::make_unique<Member>(std::move(options)));
    }
  }

  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }

  Member& operator[](int rank) { return *members_[static_cast<std::size_t>(rank)]; }

  /// Runs f(rank, member) for every rank at the same time and returns when all are done.
  template <typename F>
  void everyone(F f) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank) {
      threads.emplace_back([this, rank, &f] { f(rank, (*this)[rank]); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  /// All meet for a push.
  void open(std::uint64_t epoch) {
    everyone([epoch](int rank, Member& member) {
      const Status opened = member.agreement().open(epoch, in(kPatience));
      EXPECT_TRUE(opened) << rank << ": " << opened.toString();
    });
  }

  [[nodiscard]] const std::string& folder() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace pushrod::ranks
