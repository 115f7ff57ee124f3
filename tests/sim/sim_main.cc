// SPDX-License-Identifier: Apache-2.0
// Repeats one run of the simulation with everything that happens in it.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/sim/world.h"

int main(int argc, char** argv) {
  pushrod::sim::FaultPlan plan;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--old-profile") {
      plan.oldProfile = true;
      continue;
    }
    if (flag == "--quarantine") {
      plan.quarantine = true;
      continue;
    }
    if (flag == "--pass") {
      plan.pass = true;
      continue;
    }
    if (flag == "--chunked") {
      plan.chunked = true;
      continue;
    }
    const char* const value = i + 1 < argc ? argv[++i] : "";
    if (flag == "--ranks") {
      plan.ranks = std::atoi(value);
    } else if (flag == "--engines") {
      plan.engines = std::atoi(value);
    } else if (flag == "--k") {
      plan.k = std::strtoull(value, nullptr, 10);
    } else if (flag == "--second-k") {
      plan.secondK = std::strtoull(value, nullptr, 10);
    } else if (flag == "--victim") {
      plan.victim = std::atoi(value);
    } else if (const auto kind = pushrod::sim::faultFromName(value);
               kind && (flag == "--kind" || flag == "--second")) {
      (flag == "--kind" ? plan.kind : plan.second) = *kind;
    } else {
      std::fprintf(stderr, "%s\n", plan.replay().c_str());
      return 2;
    }
  }
  if (plan.ranks < 1 || plan.engines < 1 || plan.victim >= plan.ranks) {
    std::fprintf(stderr, "ranks and engines are at least 1, the victim is a rank\n");
    return 2;
  }
  const pushrod::sim::Outcome outcome = pushrod::sim::simulate(plan, true);
  std::printf("%s", outcome.log.c_str());
  for (const std::string& text : outcome.broken) {
    std::printf("BROKEN %s\n", text.c_str());
  }
  return outcome.broken.empty() ? 0 : 1;
}
