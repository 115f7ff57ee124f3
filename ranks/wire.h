// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <pushrod/agreement.h>

namespace pushrod::ranks {

/// Longest texts of a Status that travel between ranks; longer ones are cut.
inline constexpr std::size_t kMaxMessage = 512;
inline constexpr std::size_t kMaxEngineName = 96;

/// `text` in at most `limit` bytes, not cut inside a UTF-8 character.
[[nodiscard]] std::string_view cut(std::string_view text, std::size_t limit);

/// Appends little-endian values to a byte string.
class WireWriter {
 public:
  void u8(std::uint8_t value) { integer(value, 1); }

  void u32(std::uint32_t value) { integer(value, 4); }

  void u64(std::uint64_t value) { integer(value, 8); }

  void i32(int value) { integer(static_cast<std::uint32_t>(value), 4); }

  /// At most `limit` bytes of `value`, with their number before them.
  void text(std::string_view value, std::size_t limit);
  void key(const VoteKey& key);
  /// Without its notes.
  void status(const Status& status);
  void verdict(const Verdict& verdict);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }

  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  void integer(std::uint64_t value, int width);

  std::string bytes_;
};

/// Reads what a WireWriter wrote. Anything else makes it bad: reads then give zero values.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  std::uint8_t u8() { return static_cast<std::uint8_t>(integer(1)); }

  std::uint32_t u32() { return static_cast<std::uint32_t>(integer(4)); }

  std::uint64_t u64() { return integer(8); }

  int i32() { return static_cast<int>(u32()); }

  std::string text(std::size_t limit);
  VoteKey key();
  Status status();
  Verdict verdict();

  [[nodiscard]] bool good() const { return good_; }

  /// Good and nothing left.
  [[nodiscard]] bool finished() const { return good_ && bytes_.empty(); }

 private:
  std::uint64_t integer(std::size_t width);
  /// A byte that must not be above `last`.
  std::uint8_t bounded(std::uint8_t last);

  std::string_view bytes_;
  bool good_ = true;
};

}  // namespace pushrod::ranks
