// SPDX-License-Identifier: Apache-2.0
// Ranks as processes that are killed, stopped and continued.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "local_job.h"
#include "ranks/interrupt.h"

namespace pushrod::ranks {
namespace {

VoteKey keyOf(std::uint64_t epoch, std::uint32_t step) {
  return {epoch, 1, Phase::kStream, step};
}

std::size_t entries(const char* folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(folder)) {
    ++count;
  }
  return count;
}

/// What this process has in memory, in pages; a sanitizer keeps what was freed.
std::size_t residentPages() {
#ifdef PUSHROD_SANITIZED
  return 0;
#else
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident;
#endif
}

/// The ranks of a job as child processes. What a rank's function returns is its exit code.
class Processes {
 public:
  using Body = std::function<int(int rank, Member& member)>;

  void start(int size, const Body& body) {
    for (int rank = 0; rank < size; ++rank) {
      const pid_t child = ::fork();
      if (child == 0) {
        int code = 1;
        {
          Member member(localOptions(rank, size, folder_.path()));
          code = body(rank, member);
        }
        ::_exit(code);
      }
      children_.push_back(child);
    }
  }

  ~Processes() {
    for (const pid_t child : children_) {
      if (child > 0) {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
      }
    }
  }

  void signal(int rank, int number) { ::kill(children_[static_cast<std::size_t>(rank)], number); }

  /// The exit code, or minus the signal.
  int await(int rank) {
    pid_t& child = children_[static_cast<std::size_t>(rank)];
    int status = 0;
    ::waitpid(child, &status, 0);
    child = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  /// Waits until a rank's mark is there.
  void awaitMark(int rank) const {
    Interrupt nobody;
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!std::filesystem::exists(mark(rank)) && std::chrono::steady_clock::now() < end) {
      (void)nobody.waitFor(Duration{5});
    }
  }

  void setMark(int rank) const { std::filesystem::create_directory(mark(rank)); }

 private:
  [[nodiscard]] std::string mark(int rank) const {
    return folder_.path() + "/mark-" + std::to_string(rank);
  }

  TemporaryFolder folder_;
  std::vector<pid_t> children_;
};

constexpr int kFine = 10;
constexpr int kUnavailableCode = 11;
constexpr int kOther = 12;

int codeOf(const Status& status) {
  if (status.ok()) {
    return kFine;
  }
  return status.code() == Code::kUnavailable ? kUnavailableCode : kOther;
}

/// Survivors of a rank that dies while the others vote; each must hear long before its limit.
void killWhileVoting(int size, int victim) {
  Processes processes;
  processes.start(size, [&](int rank, Member& member) {
    if (!member.agreement().open(1, in(kPatience)) ||
        !member.agreement().vote(keyOf(1, 0), {}, in(kPatience))) {
      return 1;
    }
    processes.setMark(rank);
    if (rank == victim) {
      ::pause();
    }
    return codeOf(member.agreement().vote(keyOf(1, 1), {}, in(kPatience)).status());
  });
  for (int rank = 0; rank < size; ++rank) {
    processes.awaitMark(rank);
  }
  const auto begin = std::chrono::steady_clock::now();
  processes.signal(victim, SIGKILL);
  EXPECT_EQ(processes.await(victim), -SIGKILL);
  for (int rank = 0; rank < size; ++rank) {
    if (rank != victim) {
      EXPECT_EQ(processes.await(rank), kUnavailableCode) << rank;
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPatience / 2);
}

TEST(ProcessTest, KilledLeafIsHeardByAll) {
  killWhileVoting(10, 9);
}

TEST(ProcessTest, KilledInnerRankIsHeardByAll) {
  killWhileVoting(10, 1);
}

TEST(ProcessTest, KilledRootIsHeardByAll) {
  killWhileVoting(10, 0);
}

/// A rank that is stopped before a vote: the others give up, and all meet again when it runs on.
void stopBeforeAVote(int victim) {
  constexpr int kSize = 3;
  Processes processes;
  processes.start(kSize, [&](int rank, Member& member) {
    Agreement& agreement = member.agreement();
    if (!agreement.open(1, in(kPatience)) || !agreement.vote(keyOf(1, 0), {}, in(kPatience))) {
      return 1;
    }
    if (rank == victim) {
      processes.setMark(rank);
      ::raise(SIGSTOP);
    }
    // Gloo's send to a peer that has gone sometimes waits out its limit: it stays below the others'
    // patience. (In a push the rank link interrupts such a wait.)
    const Duration limit{rank == victim ? 3000 : 500};
    const bool agreed = agreement.vote(keyOf(1, 1), {}, in(limit)).ok();
    // Rank 0 may find that all had voted before they gave up; its next vote is met by nobody.
    const bool rankZeroWoke = rank == 0 && victim == 0;
    if (agreed && (!rankZeroWoke || agreement.vote(keyOf(1, 2), {}, in(limit)))) {
      return 2;
    }
    if (rank != victim) {
      processes.setMark(rank);
    }
    if (const Status opened = agreement.open(2, in(kPatience)); !opened) {
      std::fprintf(stderr, "rank %d, second meeting: %s\n", rank, opened.toString().c_str());
      return 3;
    }
    const Status voted = agreement.vote(keyOf(2, 0), {}, in(kPatience)).status();
    if (!voted) {
      std::fprintf(stderr, "rank %d, vote after it: %s\n", rank, voted.toString().c_str());
    }
    return codeOf(voted);
  });
  for (int rank = 0; rank < kSize; ++rank) {
    processes.awaitMark(rank);
  }
  processes.signal(victim, SIGCONT);
  for (int rank = 0; rank < kSize; ++rank) {
    EXPECT_EQ(processes.await(rank), kFine) << rank;
  }
}

TEST(ProcessTest, StoppedRankFailsAfterwardsAndTheNextPushMeetsIt) {
  stopBeforeAVote(2);
}

TEST(ProcessTest, StoppedRankZeroFailsAfterwardsAndTheNextPushMeetsIt) {
  stopBeforeAVote(0);
}

TEST(ProcessTest, ManyRebuildsLeaveNothingBehind) {
  constexpr int kSize = 4;
  constexpr std::uint64_t kRebuilds = 200;
  constexpr std::size_t kSparePages = 150;
  Processes processes;
  processes.start(kSize, [](int rank, Member& member) {
    Agreement& agreement = member.agreement();
    std::size_t files = 0;
    std::size_t threads = 0;
    std::size_t pages = 0;
    for (std::uint64_t epoch = 1; epoch <= kRebuilds; ++epoch) {
      Status status = agreement.open(epoch, in(kPatience));
      if (status.ok()) {
        status = agreement.vote(keyOf(epoch, 0), {}, in(kPatience)).status();
      }
      if (!status) {
        std::fprintf(stderr, "rank %d: %s\n", rank, status.toString().c_str());
        return 1;
      }
      // The most of a few: Gloo's thread closes a socket a moment after it was given up.
      if (epoch >= 5 && epoch < 25) {
        files = std::max(files, entries("/proc/self/fd"));
        threads = std::max(threads, entries("/proc/self/task"));
        pages = std::max(pages, residentPages());
      }
      // One rank goes its own way: all lose their connections.
      const std::uint32_t step = rank == static_cast<int>(epoch % kSize) ? 2 : 1;
      if (agreement.vote(keyOf(epoch, step), {}, in(kPatience))) {
        return 2;
      }
    }
    if (!agreement.open(kRebuilds + 1, in(kPatience)) ||
        !agreement.vote(keyOf(kRebuilds + 1, 0), {}, in(kPatience))) {
      return 3;
    }
    const std::size_t filesNow = entries("/proc/self/fd");
    const std::size_t threadsNow = entries("/proc/self/task");
    if (filesNow > files || threadsNow > threads) {
      std::fprintf(stderr,
                   "rank %d: from %zu to %zu descriptors, from %zu to %zu threads\n",
                   rank,
                   files,
                   filesNow,
                   threads,
                   threadsNow);
      return 4;
    }
    // One that is lost at each rebuild would be 175 of them.
    if (const std::size_t now = residentPages(); now > pages + kSparePages) {
      std::fprintf(stderr, "rank %d: from %zu to %zu pages\n", rank, pages, now);
      return 5;
    }
    return kFine;
  });
  for (int rank = 0; rank < kSize; ++rank) {
    EXPECT_EQ(processes.await(rank), kFine) << rank;
  }
}

}  // namespace
}  // namespace pushrod::ranks
