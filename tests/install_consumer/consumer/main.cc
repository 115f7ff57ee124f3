// SPDX-License-Identifier: Apache-2.0
// A program outside the project: the facade through the installed package alone.
#include <cstdio>

#include <pushrod/pushrod.h>

namespace {

constexpr const char* kConfig = R"(
engines:
  list:
    - url: http://127.0.0.1:1
transport:
  kind: tcp
metrics:
  listen: ""
)";

}  // namespace

int main() {
  const auto config = pushrod::Config::parse(kConfig, "consumer.yaml");
  if (!config) {
    std::fprintf(stderr, "%s\n", config.status().toString().c_str());
    return 1;
  }
  const auto coordinator = pushrod::PushCoordinator::create(*config, pushrod::Rank::of(0, 1));
  if (!coordinator) {
    std::fprintf(stderr, "%s\n", coordinator.status().toString().c_str());
    return 1;
  }
  std::printf("pushrod %s, job %s\n", PUSHROD_VERSION, config->job.c_str());
  return 0;
}
