// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <sys/types.h>
#include <vector>

namespace pushrod::bench {

/// A child process that plays many engines: one epoll loop, one port each, a fixed small JSON
/// answer to every request. Start it before any thread; it ends with this object, or with its
/// parent.
class FakeEngines {
 public:
  explicit FakeEngines(int count);
  ~FakeEngines();
  FakeEngines(const FakeEngines&) = delete;
  FakeEngines& operator=(const FakeEngines&) = delete;

  [[nodiscard]] const std::vector<std::uint16_t>& ports() const { return ports_; }

 private:
  std::vector<std::uint16_t> ports_;
  pid_t child_ = -1;
};

}  // namespace pushrod::bench
