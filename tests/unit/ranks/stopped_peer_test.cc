// SPDX-License-Identifier: Apache-2.0
// A rank that is stopped with a connection in its queue, and wakes up after the other has given up.
#include <csignal>
#include <future>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "local_job.h"
#include "ranks/pair_set.h"
#include "ranks/rendezvous.h"

namespace pushrod::ranks {
namespace {

constexpr int kSize = 3;
constexpr int kFine = 10;
constexpr int kTooLate = 11;
/// From its meeting on, the stop included.
constexpr Duration kStoppedRanksLimit{700};

/// One rank of three that has met the others.
struct Place {
  Place(int rank, const std::string& folder) {
    RendezvousOptions options;
    options.rank = *Rank::of(rank, kSize);
    options.job = "test";
    options.privateDirectory = folder;
    auto created = Rendezvous::create(executor, std::move(options));
    EXPECT_TRUE(created) << created.status().toString();
    rendezvous = std::move(*created);
  }

  Status meet() { return rendezvous->meet(interrupt, in(kPatience)); }

  /// With the two others.
  Status connect(Duration limit) {
    PairSet::Options options;
    for (int peer = 0; peer < kSize; ++peer) {
      if (peer != rendezvous->rank().rank) {
        options.peers.push_back(peer);
      }
    }
    options.prefix = "pairs";
    return PairSet::connect(*rendezvous, options, interrupt, in(limit)).status();
  }

  net::IoExecutor executor;
  Interrupt interrupt;
  std::unique_ptr<Rendezvous> rendezvous;
};

/// Rank 0 is stopped before it connects. Rank 1 joins it, as far as the system does that alone,
/// waits in vain for rank 2 and is told to stop. Returns how rank 0 ended once it ran again;
/// kTooLate where the machine was too busy to stop it in time.
int wakesUpAfterwards() {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    Place zero(0, folder.path());
    const bool given = zero.meet().ok() && !zero.connect(kStoppedRanksLimit);
    ::_exit(given ? kFine : 1);
  }
  Place one(1, folder.path());
  Place two(2, folder.path());
  auto met = std::async(std::launch::async, [&] { return two.meet(); });
  EXPECT_TRUE(one.meet());
  EXPECT_TRUE(met.get());
  EXPECT_TRUE(awaitKey(one.rendezvous->store(), "pairs/0", one.interrupt, in(kPatience)));
  ::kill(child, SIGSTOP);
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  if (!WIFSTOPPED(status)) {
    return kTooLate;
  }
  auto waiting = std::async(std::launch::async, [&] { return one.connect(kPatience); });
  EXPECT_EQ(waiting.wait_for(Duration{150}), std::future_status::timeout);
  one.interrupt.set(Status(Code::kAborted, "the push was stopped"));
  EXPECT_EQ(waiting.get().message(), "the push was stopped");
  ::kill(child, SIGCONT);
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(StoppedPeerTest, OutlivesAConnectionThatWasGivenUpMeanwhile) {
  // Which side connects is drawn by the ports.
  int rounds = 0;
  for (int tries = 0; tries < 40 && rounds < 6; ++tries) {
    const int end = wakesUpAfterwards();
    rounds += end == kTooLate ? 0 : 1;
    ASSERT_TRUE(end == kFine || end == kTooLate) << end;
  }
  EXPECT_EQ(rounds, 6);
}

}  // namespace
}  // namespace pushrod::ranks
