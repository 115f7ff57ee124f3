// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <pushrod/result.h>

namespace pushrod::transports::shm {

/// "/pushrod.<job>.<unique>-<rank>": what shm_open takes. Ranks of one run that stand for different
/// hosts never share a name, also where those hosts are one machine.
[[nodiscard]] std::string segmentName(const std::string& job, const std::string& unique, int rank);

/// A POSIX shared memory segment with a lock file beside it, which its owner holds locked for life:
/// so a segment whose owner is dead can be told from a living one's. Its memory is allocated when
/// it is made, so that a full /dev/shm is an error there and never a signal later. The destructor
/// unlinks both; who has mapped the segment keeps what it reads.
class Segment {
 public:
  /// `name` as segmentName gives it; `bytes` at least 1. unavailable: no memory, or the name is
  /// somebody's already.
  static Result<std::unique_ptr<Segment>> create(const std::string& name, std::uint64_t bytes);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }

  [[nodiscard]] std::uint64_t size() const { return size_; }

  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  Segment(std::string name, int lock) : name_(std::move(name)), lock_(lock) {}

  Status allocate(std::uint64_t bytes);

  std::string name_;
  int lock_;
  bool made_ = false;
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
};

/// Removes every segment of Pushrod on this host whose owner is dead, whatever its job; returns how
/// many. Others, and what this user may not open, stay.
std::size_t removeDeadSegments();

}  // namespace pushrod::transports::shm
