// SPDX-License-Identifier: Apache-2.0
#include "config/nearest.h"

#include <algorithm>

namespace pushrod::config {

namespace {

/// Keys are far shorter; longer texts are not worth a comparison.
constexpr std::size_t kLongestCompared = 64;
constexpr std::size_t kMostNamed = 3;

std::string_view leafOf(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

std::string_view parentOf(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

/// Case, and hyphen for underscore, are the commonest slips: they cost nothing.
std::string folded(std::string_view leaf) {
  std::string text(leaf.substr(0, kLongestCompared));
  for (char& c : text) {
    c = c == '-' || c == ' ' ? '_' : c;
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  return text;
}

std::string placeText(std::string_view path) {
  const std::string_view parent = parentOf(path);
  if (parent.empty()) {
    return "at the top level";
  }
  if (parent.starts_with("engines.list[]")) {
    const std::string_view rest = parent.substr(14);
    return (rest.empty() ? "" : "under " + std::string(rest.substr(1)) + " ") +
           std::string("in an entry of engines.list");
  }
  return "under " + std::string(parent);
}

}  // namespace

std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> beforeLast(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    beforeLast.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) {
        row[j] = std::min(row[j], beforeLast[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string nearestKeyText(std::string_view unknown, const std::vector<std::string>& known) {
  const std::string wanted = folded(leafOf(unknown));
  const std::string_view section = parentOf(unknown);
  std::size_t smallest = std::string::npos;
  std::vector<std::string_view> nearest;
  for (const std::string& path : known) {
    // Twice the distance, so that another section can cost half a letter.
    const std::size_t score =
        2 * editDistance(wanted, folded(leafOf(path))) + (parentOf(path) == section ? 0U : 1U);
    if (score < smallest) {
      smallest = score;
      nearest.clear();
    }
    if (score == smallest) {
      nearest.emplace_back(path);
    }
  }
  std::string text =
      nearest.size() > 1 ? "the nearest known keys are " : "the nearest known key is ";
  for (std::size_t i = 0; i < std::min(nearest.size(), kMostNamed); ++i) {
    text += (i == 0 ? "" : ", or ") + std::string(nearest[i]) + ", which belongs " +
            placeText(nearest[i]);
  }
  return text;
}

}  // namespace pushrod::config
