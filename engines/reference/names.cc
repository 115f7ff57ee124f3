// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/names.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace pushrod::engines::reference {

namespace {

struct Part {
  std::string_view name;
  std::string_view fused;
  int order;
};

constexpr std::array<Part, 5> kParts = {{{"q_proj", "qkv_proj", 0},
                                         {"k_proj", "qkv_proj", 1},
                                         {"v_proj", "qkv_proj", 2},
                                         {"gate_proj", "gate_up_proj", 0},
                                         {"up_proj", "gate_up_proj", 1}}};

bool isNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isdigit(c) != 0;
  });
}

/// "model.layers.3" of "model.layers.3.mlp.up_proj.weight"; empty when there is no numbered layer.
std::string_view numberedLayer(std::string_view name) {
  constexpr std::string_view kWord = "layers.";
  for (std::size_t at = name.find(kWord); at != std::string_view::npos;
       at = name.find(kWord, at + 1)) {
    const std::size_t number = at + kWord.size();
    const std::size_t end = name.find('.', number);
    const bool whole = at == 0 || name[at - 1] == '.';
    if (whole && end != std::string_view::npos && isNumber(name.substr(number, end - number))) {
      return name.substr(0, end);
    }
  }
  return {};
}

}  // namespace

NameParts splitName(std::string_view name) {
  NameParts parts;
  const std::size_t dot = name.rfind('.');
  const std::string_view module = dot == std::string_view::npos ? name : name.substr(0, dot);
  const std::string_view leaf = dot == std::string_view::npos ? "" : name.substr(dot);
  const std::size_t last = module.rfind('.');
  const std::size_t begin = last == std::string_view::npos ? 0 : last + 1;
  parts.module = module;
  for (const Part& part : kParts) {
    if (module.substr(begin) == part.name) {
      parts.module = std::string(module.substr(0, begin)) + std::string(part.fused);
      parts.fused = true;
      parts.order = part.order;
    }
  }
  parts.runtime = parts.module + std::string(leaf);
  const std::string_view layer = numberedLayer(name);
  parts.block = layer.empty() ? parts.module : std::string(layer);
  return parts;
}

}  // namespace pushrod::engines::reference
