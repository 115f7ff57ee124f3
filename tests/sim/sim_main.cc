// SPDX-License-Identifier: Apache-2.0
// Repeats one run of the simulation with everything that happens in it, or makes many.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/sim/campaign.h"
#include "tests/sim/generator.h"

namespace pushrod::sim {
namespace {

struct Wish {
  FaultPlan plan;
  std::optional<std::uint64_t> seed;
  std::optional<std::vector<std::size_t>> keep;
  int ranks = 0;
  int engines = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool many = false;
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
};

constexpr const char* kUsage =
    "pushrod_sim --ranks N --engines N --kind KIND --k N [--victim N] [--second KIND --second-k "
    "N]\n"
    "            [--old-profile] [--quarantine] [--chunked] [--pass] [--draft] [--replicas] "
    "[--checksums] "
    "[--owners "
    "N]\n"
    "pushrod_sim --seed N [--keep I,J | none] [--ranks N] [--engines N]\n"
    "pushrod_sim --seeds A..B [--jobs N]\n";

std::uint64_t number(std::string_view text) {
  return std::strtoull(std::string(text).c_str(), nullptr, 10);
}

std::vector<std::size_t> numbers(std::string_view text) {
  std::vector<std::size_t> list;
  while (!text.empty() && text != "none") {
    const std::size_t comma = std::min(text.find(','), text.size());
    list.push_back(number(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return list;
}

bool takeSwitch(Wish& wish, std::string_view flag) {
  bool* const found = flag == "--old-profile"  ? &wish.plan.oldProfile
                      : flag == "--quarantine" ? &wish.plan.quarantine
                      : flag == "--chunked"    ? &wish.plan.chunked
                      : flag == "--pass"       ? &wish.plan.pass
                      : flag == "--draft"      ? &wish.plan.draft
                      : flag == "--replicas"   ? &wish.plan.replicas
                      : flag == "--checksums"  ? &wish.plan.checksums
                                               : nullptr;
  if (found != nullptr) {
    *found = true;
  }
  return found != nullptr;
}

bool takeValue(Wish& wish, std::string_view flag, std::string_view value) {
  if (flag == "--ranks") {
    wish.ranks = static_cast<int>(number(value));
  } else if (flag == "--engines") {
    wish.engines = static_cast<int>(number(value));
  } else if (flag == "--k") {
    wish.plan.k = number(value);
  } else if (flag == "--second-k") {
    wish.plan.secondK = number(value);
  } else if (flag == "--owners") {
    wish.plan.owners = static_cast<int>(number(value));
  } else if (flag == "--victim") {
    wish.plan.victim = static_cast<int>(number(value));
  } else if (flag == "--seed") {
    wish.seed = number(value);
  } else if (flag == "--keep") {
    wish.keep = numbers(value);
  } else if (flag == "--jobs") {
    wish.jobs = std::max(1U, static_cast<unsigned>(number(value)));
  } else if (const std::size_t dots = value.find(".."); flag == "--seeds" && dots != value.npos) {
    wish.first = number(value.substr(0, dots));
    wish.last = number(value.substr(dots + 2));
    wish.many = true;
  } else if (const auto kind = faultFromName(value);
             kind && (flag == "--kind" || flag == "--second")) {
    (flag == "--kind" ? wish.plan.kind : wish.plan.second) = *kind;
  } else {
    return false;
  }
  return true;
}

int runOnce(const Wish& wish) {
  FaultPlan plan = wish.plan;
  if (wish.seed) {
    plan = randomPlan(*wish.seed);
    plan = wish.keep ? keepOnly(plan, *wish.keep) : plan;
    plan = shrunkTo(plan,
                    wish.ranks > 0 ? wish.ranks : plan.ranks,
                    wish.engines > 0 ? wish.engines : plan.engines);
  } else {
    plan.ranks = std::max(1, wish.ranks);
    plan.engines = std::max(1, wish.engines);
  }
  if (plan.victim >= plan.ranks) {
    std::fprintf(stderr, "the victim is a rank\n");
    return 2;
  }
  std::printf("%s\n", plan.text().c_str());
  std::fflush(stdout);
  const Outcome outcome = simulate(plan, true);
  std::printf("%s", outcome.log.c_str());
  for (const std::string& text : outcome.broken) {
    std::printf("BROKEN %s\n", text.c_str());
  }
  return outcome.broken.empty() ? 0 : 1;
}

/// One process of several that share nothing but the output.
[[noreturn]] void work(const Wish& wish, unsigned job) {
  const Campaign campaign = runSeeds(
      wish.first + job, wish.last, wish.jobs, [](const FaultPlan& plan) { return simulate(plan); });
  for (const std::string& failure : campaign.failures) {
    std::printf("%s\n", failure.c_str());
  }
  if (campaign.failed > 0) {
    std::printf("%llu of %llu runs failed\n",
                static_cast<unsigned long long>(campaign.failed),
                static_cast<unsigned long long>(campaign.runs));
  }
  std::fflush(stdout);
  _exit(campaign.failed == 0 ? 0 : 1);
}

int runMany(const Wish& wish) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<pid_t> children;
  for (unsigned job = 0; job < wish.jobs; ++job) {
    const pid_t child = fork();
    if (child == 0) {
      work(wish, job);
    }
    if (child < 0) {
      std::perror("fork");
      return 2;
    }
    children.push_back(child);
  }
  bool good = true;
  for (const pid_t child : children) {
    int status = 0;
    good = waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
           good;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::uint64_t runs = wish.last - wish.first + 1;
  std::printf("%llu seeds in %.1f s, %.0f runs per second, %u processes: %s\n",
              static_cast<unsigned long long>(runs),
              seconds,
              static_cast<double>(runs) / seconds,
              wish.jobs,
              good ? "every promise is kept" : "FAILED");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace pushrod::sim

int main(int argc, char** argv) {
  pushrod::sim::Wish wish;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (pushrod::sim::takeSwitch(wish, flag)) {
      continue;
    }
    if (i + 1 >= argc || !pushrod::sim::takeValue(wish, flag, argv[i + 1])) {
      std::fputs(pushrod::sim::kUsage, stderr);
      return 2;
    }
    ++i;
  }
  return wish.many ? pushrod::sim::runMany(wish) : pushrod::sim::runOnce(wish);
}
