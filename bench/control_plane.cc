// SPDX-License-Identifier: Apache-2.0
// Client processor time of a push's six control requests, against 1, 16, 128 and 1000 fake engines:
// Pushrod's HTTP client, a bare epoll client (the floor) and aiohttp, interleaved. Prints one
// table; exits with 1 when a goal was missed.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "bench/control_plane_clients.h"
#include "bench/control_plane_engines.h"

namespace pushrod::bench {
namespace {

constexpr double kFloorGoal = 3.5;    ///< at most so many times the bare client's
constexpr double kAiohttpGoal = 0.2;  ///< at most so much of aiohttp's
constexpr std::size_t kBody = 30000;  ///< of update_weights
constexpr int kRounds = 7;

struct Setting {
  int engines;
  int pushes;         ///< of each C++ client in one round
  int aiohttpPushes;  ///< fewer: it is the slow one
};

constexpr std::array<Setting, 4> kSettings = {
    {{1, 400, 40}, {16, 60, 6}, {128, 10, 2}, {1000, 2, 1}}};

std::vector<Step> pushSteps() {
  const auto update = std::make_shared<const std::string>(kBody, 'x');
  const auto finish = std::make_shared<const std::string>("{\"weight_version\": \"17\"}");
  return {{"POST", "/pause?mode=keep&clear_cache=true", nullptr},
          {"POST", "/start_weight_update", nullptr},
          {"POST", "/update_weights", update},
          {"POST", "/finish_weight_update", finish},
          {"GET", "/weight_info", nullptr},
          {"POST", "/resume", nullptr}};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string aiohttpPlan(const std::vector<std::uint16_t>& ports,
                        const std::vector<Step>& steps,
                        int pushes) {
  std::string plan = "{\"pushes\": ";
  plan += std::to_string(pushes);
  plan += ", \"ports\": [";
  const char* comma = "";
  for (const std::uint16_t port : ports) {
    plan += std::exchange(comma, ",");
    plan += std::to_string(port);
  }
  plan += "], \"steps\": [";
  comma = "";
  for (const Step& step : steps) {
    plan += std::exchange(comma, ",");
    plan += "[\"" + step.method + "\",\"" + step.target + "\",";
    plan += step.body ? std::to_string(step.body->size()) : "-1";
    plan += "]";
  }
  return plan + "]}";
}

/// Runs the Python program once: processor seconds of its pushes, or nothing where it cannot run.
std::optional<double> runAiohttp(const std::string& script, const std::string& plan) {
  int in[2];
  int out[2];
  if (::pipe(in) != 0 || ::pipe(out) != 0) {
    return std::nullopt;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    for (const int end : {in[0], in[1], out[0], out[1]}) {
      ::close(end);
    }
    ::execl("/usr/bin/python3", "python3", script.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  // Far below a pipe's capacity, so that neither side can wait for the other.
  const bool asked = ::write(in[1], plan.data(), plan.size()) == static_cast<ssize_t>(plan.size());
  ::close(in[1]);
  std::string answer;
  char bytes[512];
  for (ssize_t got = 0; (got = ::read(out[0], bytes, sizeof bytes)) > 0;) {
    answer.append(bytes, static_cast<std::size_t>(got));
  }
  ::close(out[0]);
  int state = 0;
  ::waitpid(child, &state, 0);
  const auto found = answer.find("\"cpu_s\": ");
  if (!asked || state != 0 || found == std::string::npos) {
    return std::nullopt;
  }
  return std::atof(answer.c_str() + found + std::strlen("\"cpu_s\": "));
}

/// Measures one number of engines. Whether every goal was met.
bool measure(const Setting& setting, const std::string& script) {
  const std::vector<Step> steps = pushSteps();
  const FakeEngines engines(setting.engines);
  const auto bare = makeBareClient(engines.ports(), steps);
  const auto ours = makePushrodClient(engines.ports(), steps);
  const double perPush = static_cast<double>(steps.size()) * setting.engines;
  std::vector<double> bareCosts;
  std::vector<double> ourCosts;
  std::vector<double> ratios;
  std::vector<double> python;
  std::vector<double> walls;
  for (int round = 0; round < kRounds; ++round) {
    bare->push(1);
    const Cost floor = bare->push(setting.pushes);
    ours->push(1);
    const Cost cost = ours->push(setting.pushes);
    bareCosts.push_back(floor.cpuSeconds / (perPush * setting.pushes) * 1e6);
    ourCosts.push_back(cost.cpuSeconds / (perPush * setting.pushes) * 1e6);
    ratios.push_back(cost.cpuSeconds / floor.cpuSeconds);
    walls.push_back(cost.wallSeconds / setting.pushes * 1e3);
    if (const auto seconds =
            runAiohttp(script, aiohttpPlan(engines.ports(), steps, setting.aiohttpPushes))) {
      python.push_back(*seconds / (perPush * setting.aiohttpPushes) * 1e6);
    }
  }
  const double ratio = median(ratios);
  std::printf("%7d  %9.1f  %9.1f  %7.2f  %9.2f",
              setting.engines,
              median(bareCosts),
              median(ourCosts),
              ratio,
              median(walls));
  bool good = ratio <= kFloorGoal;
  if (python.empty()) {
    std::printf("  %9s  %7s\n", "-", "-");
  } else {
    const double share = median(ourCosts) / median(python);
    std::printf("  %9.1f  %7.3f\n", median(python), share);
    good = good && share <= kAiohttpGoal;
  }
  return good;
}

}  // namespace
}  // namespace pushrod::bench

int main() {
  std::printf("processor time of the client per request, in microseconds (medians of rounds)\n");
  std::printf("engines       bare    pushrod    ratio  wall (ms)    aiohttp    share\n");
  bool good = true;
  for (const auto& setting : pushrod::bench::kSettings) {
    good = pushrod::bench::measure(setting, PUSHROD_BENCH_AIOHTTP) && good;
    std::fflush(stdout);
  }
  std::printf("goals: ratio <= %.1f, share <= %.1f: %s\n",
              pushrod::bench::kFloorGoal,
              pushrod::bench::kAiohttpGoal,
              good ? "met" : "missed");
  return good ? 0 : 1;
}
