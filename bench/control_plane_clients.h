// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pushrod::bench {

/// One request of a push, the same for every engine.
struct Step {
  std::string method, target;
  std::shared_ptr<const std::string> body;
};

/// Cost of some pushes: processor time of the client's one thread, and time on the clock.
struct Cost {
  double cpuSeconds = 0;
  double wallSeconds = 0;
};

/// A client that makes pushes: each step goes to all engines at once, and the next waits for all.
class PushClient {
 public:
  PushClient() = default;
  PushClient(const PushClient&) = delete;
  PushClient& operator=(const PushClient&) = delete;
  virtual ~PushClient() = default;
  virtual Cost push(int times) = 0;
};

/// The floor: epoll, one send and one receive per request, no HTTP understanding worth the name, no
/// deadlines, no checks of kept connections.
std::unique_ptr<PushClient> makeBareClient(const std::vector<std::uint16_t>& ports,
                                           const std::vector<Step>& steps);
/// Pushrod's own: one http::Client per engine on one control thread.
std::unique_ptr<PushClient> makePushrodClient(const std::vector<std::uint16_t>& ports,
                                              const std::vector<Step>& steps);

/// Processor time of the calling thread.
[[nodiscard]] double threadCpuSeconds();

}  // namespace pushrod::bench
