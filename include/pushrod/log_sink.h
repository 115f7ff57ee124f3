// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace pushrod {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

/// Receives finished log texts (one paragraph, no line end). Called from any thread; must not block
/// for long and must not call back into Pushrod. Secrets are never passed to it.
class LogSink {
 public:
  LogSink() = default;
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;
  virtual ~LogSink() = default;
  virtual void log(LogLevel level, std::string_view text) = 0;
};

}  // namespace pushrod
