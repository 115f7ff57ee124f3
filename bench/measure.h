// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace pushrod::bench {

/// One way of doing the same work.
struct Arm {
  std::string name;
  std::function<bool()> run;  ///< false: the work went wrong, the whole run is void
};

/// A goal: the speed of `arm` over that of `anchor`.
struct Goal {
  std::size_t arm;
  std::size_t anchor;
  double atLeast;
};

enum class Verdict : std::uint8_t { kPass = 0, kFail = 1, kNoVerdict = 3 };

/// A folder of this run, gone with it whatever happens.
class TemporaryFolder {
 public:
  /// Throws std::runtime_error.
  TemporaryFolder()
      : path_((std::filesystem::temp_directory_path() / "pushrod-bench-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw std::runtime_error("no folder can be made in " +
                               std::filesystem::temp_directory_path().string());
    }
  }

  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline double cpuSeconds(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/// Busy and stolen seconds of all processors since boot.
struct Machine {
  double busy = 0;
  double stolen = 0;

  static Machine now() {
    std::ifstream in("/proc/stat");
    std::string cpu;
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, steal = 0;
    in >> cpu >> user >> nice >> system >> idle >> wait >> irq >> soft >> steal;
    const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
    return {(user + nice + system + irq + soft) / ticks, steal / ticks};
  }
};

inline std::string loadAverage() {
  std::ifstream in("/proc/loadavg");
  std::string text;
  std::getline(in, text);
  return text;
}

inline double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

/// What the measured rounds took.
struct Samples {
  std::vector<std::vector<double>> seconds;  ///< per arm, per round
  std::vector<double> cpu;                   ///< per arm, summed
  double others = 0;                         ///< processors that other processes kept busy
  double stolen = 0;
};

/// Warm-up, then interleaved rounds with rotating order; false when an arm went wrong.
inline bool collect(const std::vector<Arm>& arms,
                    double gigabytes,
                    int rounds,
                    const std::function<double()>& otherCpu,
                    Samples& samples) {
  using Clock = std::chrono::steady_clock;
  const auto ownCpu = [&] { return cpuSeconds(RUSAGE_SELF) + otherCpu(); };
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  samples.seconds.resize(arms.size());
  samples.cpu.assign(arms.size(), 0);
  Machine before;
  double ownBefore = 0;
  Clock::time_point begun;
  for (int round = -1; round < rounds; ++round) {
    if (round == 0) {
      before = Machine::now();
      ownBefore = ownCpu();
      begun = Clock::now();
    }
    for (std::size_t k = 0; k < arms.size(); ++k) {
      const std::size_t arm = (k + static_cast<std::size_t>(round + 1)) % arms.size();
      const double cpuBefore = ownCpu();
      const auto start = Clock::now();
      if (!arms[arm].run()) {
        std::printf("void: arm '%s' failed or moved wrong bytes\n", arms[arm].name.c_str());
        return false;
      }
      const double took = since(start);
      if (round < 0) {
        std::printf("first run of %-28s %8.2f GB/s\n", arms[arm].name.c_str(), gigabytes / took);
        continue;
      }
      samples.seconds[arm].push_back(took);
      samples.cpu[arm] += ownCpu() - cpuBefore;
    }
  }
  const Machine after = Machine::now();
  samples.others = (after.busy - before.busy - (ownCpu() - ownBefore)) / since(begun);
  samples.stolen = (after.stolen - before.stolen) / since(begun);
  return true;
}

/// Prints one goal; whether it is met.
inline bool judge(const std::vector<Arm>& arms, const Samples& samples, const Goal& goal) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < samples.seconds[goal.arm].size(); ++i) {
    ratios.push_back(samples.seconds[goal.anchor][i] / samples.seconds[goal.arm][i]);
  }
  const double high = quantile(ratios, 0.9);
  std::printf("%-41s %8.3f x '%s' (10-90 %%: %.3f to %.3f), goal %.2f: %s\n",
              arms[goal.arm].name.c_str(),
              quantile(ratios, 0.5),
              arms[goal.anchor].name.c_str(),
              quantile(ratios, 0.1),
              high,
              goal.atLeast,
              high >= goal.atLeast ? "met" : "missed");
  return high >= goal.atLeast;
}

/// Runs the arms and prints each goal's median ratio with its 10-90 % range. A goal is missed only
/// when the whole range lies below it; on a machine that others used there is no verdict.
/// `otherCpu` tells the CPU seconds of processes that belong to the benchmark but are not yet
/// waited for.
inline Verdict compare(const std::vector<Arm>& arms,
                       const std::vector<Goal>& goals,
                       double gigabytes,
                       int rounds,
                       const std::function<double()>& otherCpu) {
  std::printf("load before: %s\n", loadAverage().c_str());
  Samples samples;
  if (!collect(arms, gigabytes, rounds, otherCpu, samples)) {
    return Verdict::kFail;
  }
  for (std::size_t arm = 0; arm < arms.size(); ++arm) {
    std::printf("%-41s %8.2f GB/s median, %.3f CPU s per GB\n",
                arms[arm].name.c_str(),
                gigabytes / quantile(samples.seconds[arm], 0.5),
                samples.cpu[arm] / rounds / gigabytes);
  }
  bool pass = true;
  for (const Goal& goal : goals) {
    pass = judge(arms, samples, goal) && pass;
  }
  std::printf("load after: %s; other processes %.2f CPUs, stolen %.2f CPUs\n",
              loadAverage().c_str(),
              samples.others,
              samples.stolen);
  if (samples.others > 0.1 || samples.stolen > 0.1) {
    std::printf("no verdict: the machine was not quiet\n");
    return Verdict::kNoVerdict;
  }
  return pass ? Verdict::kPass : Verdict::kFail;
}

/// Adds a verdict to that of the whole program: a failure stays.
inline Verdict worse(Verdict a, Verdict b) {
  return a == Verdict::kFail || b == Verdict::kPass ? a : b;
}

}  // namespace pushrod::bench
