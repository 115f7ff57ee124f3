// SPDX-License-Identifier: Apache-2.0
#include "common/log.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <unistd.h>

#include "common/bounded_write.h"
#include "common/time_text.h"

namespace pushrod::common {

std::string_view logLevelName(LogLevel level) {
  constexpr std::array<std::string_view, 4> kNames = {"debug", "info", "warning", "error"};
  return kNames.at(static_cast<std::size_t>(level));
}

std::string jsonQuoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          char escaped[8];
          std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
          out += escaped;
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

std::string formatLogLine(const LogOptions& options,
                          LogLevel level,
                          std::string_view utc,
                          std::string_view text) {
  if (options.style == LogStyle::kJson) {
    return "{\"time\":" + jsonQuoted(utc) + ",\"level\":" + jsonQuoted(logLevelName(level)) +
           ",\"job\":" + jsonQuoted(options.job) + ",\"rank\":" + std::to_string(options.rank) +
           ",\"text\":" + jsonQuoted(text) + "}";
  }
  std::string line(utc);
  line += " ";
  line += logLevelName(level);
  line += " " + options.job + "[" + std::to_string(options.rank) + "] ";
  for (const char c : text) {
    // Some texts come from engines: none may begin a line of its own or move the cursor.
    const auto byte = static_cast<unsigned char>(c);
    line += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
  return line;
}

namespace {

/// A terminal that was stopped, or a reader that hangs, must not hold up a push: after one wait
/// lines are dropped until it reads again. A line that cannot be written has nowhere to be
/// reported.
void writeLine(std::string_view line) {
  constexpr std::chrono::milliseconds kOnce{1000};
  static std::atomic<bool> stalled{false};
  const auto limit = stalled ? std::chrono::milliseconds::zero() : kOnce;
  stalled = !writeWithin(STDERR_FILENO, line, limit);
}

}  // namespace

void StderrLogSink::log(LogLevel level, std::string_view text) {
  if (level < options_.level) {
    return;
  }
  // A terminal may show a progress line, which would stand before this one on its row.
  static const bool kTerminal = ::isatty(STDERR_FILENO) == 1;
  const std::string line =
      (kTerminal ? "\r\033[K" : "") +
      formatLogLine(options_, level, utcText(std::chrono::system_clock::now()), text) + "\n";
  writeLine(line);
}

}  // namespace pushrod::common
