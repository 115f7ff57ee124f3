// SPDX-License-Identifier: Apache-2.0
#include "config/effective.h"

#include <algorithm>

#include "config/key_table.h"

namespace pushrod::config {

namespace {

std::vector<std::string> splitPath(std::string_view path) {
  std::vector<std::string> parts;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    parts.emplace_back(path.substr(0, dot));
    path.remove_prefix(dot + 1);
  }
  parts.emplace_back(path);
  return parts;
}

}  // namespace

std::size_t SectionWriter::indentOf(std::string_view path) const {
  return indent_ + 2 * splitPath(path).size();
}

void SectionWriter::addLine(std::size_t depth, std::string_view line) {
  text_ += text_.empty() ? "" : "\n";
  text_ += std::string(indent_ + 2 * depth, ' ');
  text_ += line;
}

void SectionWriter::add(std::string_view path, std::string_view value) {
  std::vector<std::string> sections = splitPath(path);
  const std::string leaf = sections.back();
  sections.pop_back();
  const auto shared = static_cast<std::size_t>(
      std::mismatch(sections.begin(), sections.end(), open_.begin(), open_.end()).first -
      sections.begin());
  for (std::size_t depth = shared; depth < sections.size(); ++depth) {
    addLine(depth, sections[depth] + ":");
  }
  addLine(sections.size(), leaf + (value.front() == '\n' ? ":" : ": ") + std::string(value));
  open_ = std::move(sections);
}

}  // namespace pushrod::config

namespace pushrod {

std::string Config::effective() const {
  return config::writeKeys(*this, config::configKeys(), 0) + "\n";
}

}  // namespace pushrod
