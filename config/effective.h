// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/key.h"

namespace pushrod::config {

/// Writes values under dotted paths as YAML sections, each section's head once.
class SectionWriter {
 public:
  explicit SectionWriter(std::size_t indent) : indent_(indent) {}

  /// Spaces before the lines below the key `path`.
  [[nodiscard]] std::size_t indentOf(std::string_view path) const;
  /// Adds "path: value". Keys of one section must follow each other.
  void add(std::string_view path, std::string_view value);

  /// The lines, without a line end after the last.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void addLine(std::size_t depth, std::string_view line);

  std::size_t indent_;
  std::vector<std::string> open_;
  std::string text_;
};

/// Every key of `owner` that has a value, as YAML.
template <typename Owner>
std::string writeKeys(const Owner& owner, const std::vector<Key<Owner>>& keys, std::size_t indent) {
  SectionWriter writer(indent);
  for (const Key<Owner>& key : keys) {
    const std::string value = key.write(owner, writer.indentOf(key.path));
    if (!value.empty()) {
      writer.add(key.path, value);
    }
  }
  return writer.text();
}

}  // namespace pushrod::config
