// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <pushrod/engine_client.h>

namespace pushrod::engines::vllm {

/// No text taken from a server is longer in our messages.
inline constexpr std::size_t kMaxQuote = 2048;

/// A server's text on one line: white space runs become one space, control characters and broken
/// UTF-8 become '?', and at most kMaxQuote bytes are kept, "..." then ends it.
[[nodiscard]] std::string oneLine(std::string_view text);
/// oneLine in double quotes.
[[nodiscard]] std::string quoted(std::string_view text);

/// The reason in an error body, whatever its shape: {"error": {"message": ...}}, {"error": "..."},
/// {"detail": ...}, {"message": ...}, or the body itself. Never empty.
[[nodiscard]] std::string errorText(std::string_view body);

/// Whether an error text was raised in a worker behind an executor. Such a failure may have left
/// replies of later workers unread.
[[nodiscard]] bool isExecutorText(std::string_view text);

/// Whether a 500 with this text means that the engine refused this very call and did nothing. A
/// fragment that belongs to another call does not count: it may be a late reply.
[[nodiscard]] bool isRefusal(CallKind kind, std::string_view text, const EngineFeatures& features);

/// `text` with each occurrence of a secret replaced.
[[nodiscard]] std::string redacted(std::string text, std::span<const std::string> secrets);

}  // namespace pushrod::engines::vllm
