// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace pushrod::engines::reference {

/// How many bytes all workers of an engine may keep. Thread-safe.
class ByteBudget {
 public:
  explicit ByteBudget(std::int64_t limit) : left_(limit) {}

  [[nodiscard]] bool take(std::int64_t bytes) {
    if (left_.fetch_sub(bytes) < bytes) {
      left_.fetch_add(bytes);
      return false;
    }
    return true;
  }

  void giveBack(std::int64_t bytes) { left_.fetch_add(bytes); }

 private:
  std::atomic<std::int64_t> left_;
};

/// A tensor's bytes, counted against a budget while they live. The budget must outlive it.
class KeptBytes {
 public:
  KeptBytes(const KeptBytes&) = delete;
  KeptBytes& operator=(const KeptBytes&) = delete;

  ~KeptBytes() { budget_.giveBack(reserved_); }

  /// Null when the budget has no room.
  static std::shared_ptr<KeptBytes> create(ByteBudget& budget, std::uint64_t bytes) {
    const auto wanted = static_cast<std::int64_t>(bytes);
    if (wanted < 0 || !budget.take(wanted)) {
      return nullptr;
    }
    return std::shared_ptr<KeptBytes>(new KeptBytes(budget, wanted));
  }

  [[nodiscard]] const std::vector<std::uint8_t>& data() const { return data_; }

  void add(const std::uint8_t* data, std::size_t bytes) {
    data_.insert(data_.end(), data, data + bytes);
  }

 private:
  KeptBytes(ByteBudget& budget, std::int64_t reserved) : budget_(budget), reserved_(reserved) {
    data_.reserve(static_cast<std::size_t>(reserved));
  }

  ByteBudget& budget_;
  std::int64_t reserved_;
  std::vector<std::uint8_t> data_;
};

}  // namespace pushrod::engines::reference
