// SPDX-License-Identifier: Apache-2.0
#include "config/fault.h"

#include <algorithm>

namespace pushrod::config {

namespace {

constexpr std::size_t kLongestQuote = 80;

}  // namespace

void FaultList::add(Position where, std::string text) {
  if (full()) {
    ++dropped_;
    return;
  }
  faults_.push_back({where, std::move(text)});
}

void FaultList::add(Position where, const std::string& path, std::string_view text) {
  add(where, path + ": " + std::string(text));
}

std::string FaultList::toString(const std::string& name) const {
  std::vector<Fault> sorted = faults_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Fault& a, const Fault& b) {
    return a.where < b.where;
  });
  std::string all;
  for (const Fault& fault : sorted) {
    if (!all.empty()) {
      all += '\n';
    }
    all += name + ":" + std::to_string(fault.where.line) + ":" +
           std::to_string(fault.where.column) + ": " + fault.text;
  }
  if (dropped_ > 0) {
    const Position last = sorted.back().where;
    all += "\n" + name + ":" + std::to_string(last.line) + ":" + std::to_string(last.column) +
           ": " + std::to_string(dropped_) + " more faults are not shown";
  }
  return all;
}

std::string quoted(std::string_view text) {
  const bool cut = text.size() > kLongestQuote;
  std::size_t length = cut ? kLongestQuote : text.size();
  // Never in the middle of a UTF-8 sequence.
  while (cut && length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) {
    --length;
  }
  std::string shown = "\"";
  for (const char c : text.substr(0, length)) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  return shown + (cut ? "...\"" : "\"");
}

}  // namespace pushrod::config
