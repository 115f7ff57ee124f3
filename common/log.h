// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include <pushrod/log_sink.h>

namespace pushrod::common {

enum class LogStyle { kText, kJson };

struct LogOptions {
  std::string job = "pushrod";
  int rank = 0;
  LogLevel level = LogLevel::kInfo;  ///< texts below it are dropped
  LogStyle style = LogStyle::kText;
};

/// One finished line (without its end) for a text.
[[nodiscard]] std::string formatLogLine(const LogOptions& options,
                                        LogLevel level,
                                        std::string_view utc,
                                        std::string_view text);

/// Writes lines to standard error, each by one write, so that lines of several ranks never mix.
class StderrLogSink final : public LogSink {
 public:
  explicit StderrLogSink(LogOptions options) : options_(std::move(options)) {}

  void log(LogLevel level, std::string_view text) override;

 private:
  LogOptions options_;
};

/// "debug", "info", "warning" or "error".
[[nodiscard]] std::string_view logLevelName(LogLevel level);
/// A text as a JSON string with its quotes.
[[nodiscard]] std::string jsonQuoted(std::string_view text);

}  // namespace pushrod::common
