// SPDX-License-Identifier: Apache-2.0
#include "tools/console.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <unistd.h>

#include "common/bounded_write.h"

namespace pushrod::tools {
namespace {

/// A terminal that was stopped, or a reader that hangs, must not keep a push from its end.
constexpr std::chrono::milliseconds kPatience{2000};

}  // namespace

void printError(std::string_view text) {
  printFaults("pushrod: " + std::string(text));
}

void printFaults(std::string_view text) {
  std::string lines(text);
  if (!lines.ends_with('\n')) {
    lines += '\n';
  }
  common::writeWithin(STDERR_FILENO, lines, kPatience);
}

void print(std::string_view text) {
  common::writeWithin(STDOUT_FILENO, text, kPatience);
}

int printAnswer(std::string_view text, int code) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    printError("the output could not be written: " + std::generic_category().message(errno));
    return kExitInternal;
  }
  return code;
}

std::string bytesText(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) {
    return std::to_string(bytes) + " B";
  }
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fixedText(value, 1) + " " + kUnits.at(unit);
}

std::string fixedText(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

}  // namespace pushrod::tools
