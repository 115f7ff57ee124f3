// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

namespace pushrod::http::detail {

/// Bytes read and not yet understood. Small while answers are small; doubles up to 64 KiB when
/// reads fill it, and beyond that only as far as the parser's own limits let input pile up.
class ReadBuffer {
 public:
  [[nodiscard]] std::string_view view() const { return {data_.data() + begin_, end_ - begin_}; }

  void consume(std::size_t bytes) {
    begin_ += bytes;
    if (begin_ == end_) {
      begin_ = end_ = 0;
    }
  }

  /// Where the next read goes: room() bytes at space().
  void makeRoom() {
    if (begin_ > 0) {
      std::memmove(data_.data(), data_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (data_.size() - end_ < kSmall / 2) {
      data_.resize(std::max(kSmall, data_.size() * 2));
    }
  }

  [[nodiscard]] char* space() { return data_.data() + end_; }

  [[nodiscard]] std::size_t room() const { return data_.size() - end_; }

  void commit(std::size_t bytes) {
    const bool full = bytes == room();
    end_ += bytes;
    if (full && data_.size() < kLarge) {
      data_.resize(data_.size() * 2);
    }
  }

 private:
  static constexpr std::size_t kSmall = 4096;
  static constexpr std::size_t kLarge = 64 << 10;

  std::vector<char> data_;
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace pushrod::http::detail
