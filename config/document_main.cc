// SPDX-License-Identifier: Apache-2.0
// Prints docs/configuration.md.
#include <cstdio>

#include "config/document.h"

int main() {
  const std::string text = pushrod::config::configurationDocument();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
