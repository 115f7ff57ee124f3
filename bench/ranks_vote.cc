// SPDX-License-Identifier: Apache-2.0
// Latency and CPU of one vote of all ranks against Gloo's own all-reduce (ring) of one int32, for
// jobs of rank processes on this host. Both arms run in turns in the same processes, so that they
// see the same machine. With all ranks on few cores the figures show total work, not depth.
//
//   bench_ranks_vote [samples per size]
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "bench/measure.h"
#include "net/io_executor.h"
#include "ranks/meeting.h"

namespace pushrod::ranks {
namespace {

constexpr Duration kLimit{120000};
constexpr std::size_t kMaxSamples = 4000;
constexpr int kMaxRanks = 64;
constexpr int kBatch = 50;  // samples of one arm before the other has its turn

using Micros = std::chrono::duration<double, std::micro>;

enum Arm : std::size_t { kTree, kRing };

/// What the processes leave for the parent, in shared memory.
struct Samples {
  std::array<std::array<double, kMaxSamples>, 2> latency;  // rank 0's
  std::array<std::array<double, kMaxRanks>, 2> cpuOfRank;  // of all samples
  std::array<bool, kMaxRanks> finished;
};

double cpuMicros() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  constexpr double kSecond = 1e6;
  return (static_cast<double>(usage.ru_utime.tv_sec) + static_cast<double>(usage.ru_stime.tv_sec)) *
             kSecond +
         static_cast<double>(usage.ru_utime.tv_usec) + static_cast<double>(usage.ru_stime.tv_usec);
}

Deadline limit() {
  return Deadline::after(SteadyClock(), kLimit);
}

/// Gloo as it comes: full mesh, ring all-reduce.
class GlooRing {
 public:
  GlooRing(int rank, int size, const std::string& folder)
      : context_(std::make_shared<gloo::rendezvous::Context>(rank, size)) {
    gloo::rendezvous::FileStore store(folder);
    gloo::transport::tcp::attr attributes("127.0.0.1");
    attributes.ai_family = AF_INET;
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    context_->setTimeout(kLimit);
    context_->connectFullMesh(store, device);
  }

  void reduce(std::uint32_t tag) {
    gloo::AllreduceOptions options(context_);
    int value = 1;
    options.setOutput(&value, 1);
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    options.setReduceFunction([](void* out, const void* one, const void* two, std::size_t count) {
      gloo::min<int>(out, one, two, count);
    });
    options.setTag(tag);
    gloo::allreduce(options);
  }

 private:
  std::shared_ptr<gloo::rendezvous::Context> context_;
};

template <typename Operation>
void measure(Arm arm, int rank, int begin, int end, Samples& samples, Operation operation) {
  const double cpu = cpuMicros();
  for (int i = begin; i < end; ++i) {
    const auto started = std::chrono::steady_clock::now();
    operation(i);
    if (rank == 0) {
      samples.latency[arm][static_cast<std::size_t>(i)] =
          Micros(std::chrono::steady_clock::now() - started).count();
    }
  }
  samples.cpuOfRank[arm][static_cast<std::size_t>(rank)] += cpuMicros() - cpu;
}

int runRank(int rank, int size, int count, const std::string& folder, Samples& samples) {
  net::IoExecutor executor;
  RanksOptions options;
  options.rank = *Rank::of(rank, size);
  options.job = "bench";
  options.privateDirectory = folder;
  options.connect = kLimit;
  auto ranks = Ranks::create(executor, options, nullptr);
  if (!ranks || !(*ranks)->agreement().open(1, limit())) {
    return 1;
  }
  Agreement& agreement = (*ranks)->agreement();
  GlooRing ring(rank, size, folder + "/ring");
  bool good = true;
  for (int begin = 0; begin < count; begin += kBatch) {
    const int end = std::min(begin + kBatch, count);
    const auto first = static_cast<std::uint32_t>(begin);
    // Untimed: both arms begin with all ranks present.
    ring.reduce(0);
    good = good && agreement.vote({1, 1, Phase::kStart, first}, {}, limit()).ok();
    measure(kTree, rank, begin, end, samples, [&](int i) {
      const VoteKey key{1, 1, Phase::kStream, static_cast<std::uint32_t>(i)};
      good = good && agreement.vote(key, {}, limit()).ok();
    });
    ring.reduce(0);
    measure(kRing, rank, begin, end, samples, [&](int i) {
      ring.reduce(static_cast<std::uint32_t>(i) + 1);
    });
  }
  samples.finished[static_cast<std::size_t>(rank)] = good;
  // The full mesh and all votes are done on every rank before one closes its connections.
  return good && agreement.vote({1, 1, Phase::kVerdict, 0}, {}, limit()).ok() ? 0 : 1;
}

double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

struct Summary {
  double median;
  double tail;
  double cpu;
};

Summary summary(const Samples& samples, Arm arm, int size, int count) {
  const auto& all = samples.latency[arm];
  const std::vector<double> latency(all.begin(), all.begin() + count);
  double cpu = 0;
  for (int rank = 0; rank < size; ++rank) {
    cpu += samples.cpuOfRank[arm][static_cast<std::size_t>(rank)];
  }
  constexpr double kMedian = 0.5;
  constexpr double kTail = 0.99;
  return {percentile(latency, kMedian), percentile(latency, kTail), cpu / count};
}

bool runSize(int size, int count) {
  const bench::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() + "/ring");
  void* memory =
      ::mmap(nullptr, sizeof(Samples), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return false;
  }
  auto* samples = new (memory) Samples();
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      int code = 1;
      try {
        code = runRank(rank, size, count, folder.path(), *samples);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      }
      ::_exit(code);
    }
    children.push_back(child);
  }
  bool good = true;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  if (good) {
    const Summary tree = summary(*samples, kTree, size, count);
    const Summary ring = summary(*samples, kRing, size, count);
    std::printf("%5d  %9.0f %9.0f %9.0f   %9.0f %9.0f %9.0f   %5.2f %5.2f\n",
                size,
                tree.median,
                tree.tail,
                tree.cpu,
                ring.median,
                ring.tail,
                ring.cpu,
                tree.median / ring.median,
                tree.cpu / ring.cpu);
    std::fflush(stdout);
  } else {
    std::fprintf(stderr, "%d ranks: a rank failed\n", size);
  }
  ::munmap(memory, sizeof(Samples));
  return good;
}

}  // namespace
}  // namespace pushrod::ranks

int main(int argc, char** argv) {
  constexpr int kDefault = 400;
  const int count = argc > 1 ? std::atoi(argv[1]) : kDefault;
  if (count < 1 || count > static_cast<int>(pushrod::ranks::kMaxSamples)) {
    std::fprintf(stderr, "samples per size: 1 to %zu\n", pushrod::ranks::kMaxSamples);
    return 2;
  }
  std::printf("          vote (us)                       gloo ring (us)                  ratio\n");
  std::printf(
      "ranks        p50       p99   cpu/vote         p50       p99    cpu/op     p50   cpu\n");
  std::fflush(stdout);
  bool good = true;
  try {
    for (const int size : {8, 16, 32, 64}) {
      good = pushrod::ranks::runSize(size, count) && good;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return good ? 0 : 1;
}
