// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/result.h>

namespace pushrod::ranks {

// The TCP store's protocol. The server greets with kStoreGreeting. A request and its reply are one
// frame each: a u32 length, then the body. Requests of one connection are answered in order.

inline constexpr std::string_view kStoreGreeting = "PUSHROD-STORE-1\n";
inline constexpr std::size_t kFrameHeader = 4;
inline constexpr std::size_t kMaxStoreFrame = std::size_t{1} << 20;
inline constexpr std::size_t kMaxStoreKeys = 512;  ///< in one request

enum class StoreOp : std::uint8_t { kGet, kSet, kErase };

struct StoreRequest {
  StoreOp op = StoreOp::kGet;
  std::vector<std::string> keys;
  std::string value;  ///< kSet
};

/// `body` with its length before it.
[[nodiscard]] std::string framed(std::string_view body);
/// Takes the first whole frame off `input`: nullopt when it is not complete, a failure when its
/// length is above `limit`.
Result<std::optional<std::string>> takeFrame(std::string& input, std::size_t limit);

[[nodiscard]] std::string encodeRequest(const StoreRequest& request);
Result<StoreRequest> decodeRequest(std::string_view body);
[[nodiscard]] std::string encodeReply(const std::vector<std::optional<std::string>>& values);
Result<std::vector<std::optional<std::string>>> decodeReply(std::string_view body);

}  // namespace pushrod::ranks
