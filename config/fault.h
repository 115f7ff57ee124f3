// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace pushrod::config {

/// A place in a text, counted from 1.
struct Position {
  int line = 1;
  int column = 1;

  [[nodiscard]] bool operator<(const Position& other) const {
    return std::tie(line, column) < std::tie(other.line, other.column);
  }
};

/// Everything found wrong with one text. Bounded: after `kMaxFaults` only the count goes on.
class FaultList {
 public:
  static constexpr std::size_t kMaxFaults = 500;

  void add(Position where, std::string text);
  /// As add, with the key's full path before the text.
  void add(Position where, const std::string& path, std::string_view text);

  [[nodiscard]] bool empty() const { return faults_.empty(); }

  [[nodiscard]] bool full() const { return faults_.size() >= kMaxFaults; }

  /// One line per fault, `name`:LINE:COLUMN: text, in the order of the text.
  [[nodiscard]] std::string toString(const std::string& name) const;

 private:
  struct Fault {
    Position where;
    std::string text;
  };

  std::vector<Fault> faults_;
  std::size_t dropped_ = 0;
};

/// `text` in quotes for a message: cut to a readable length, control characters shown as "?".
[[nodiscard]] std::string quoted(std::string_view text);

}  // namespace pushrod::config
