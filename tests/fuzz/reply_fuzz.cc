// SPDX-License-Identifier: Apache-2.0
// Any bytes as an engine's answer to any call in any dialect: one classified reply whose parts do
// not contradict each other, with a reason of one line and bounded length when it is no success.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/check.h"
#include "engines/vllm/classify.h"
#include "engines/vllm/identity.h"
#include "engines/vllm/profiles.h"
#include "engines/vllm/reply_text.h"

namespace {

using namespace pushrod;
using namespace pushrod::engines::vllm;

constexpr const char* kWhere = "POST http://10.0.0.5:8000/x";
constexpr std::size_t kLongestMessage = kMaxQuote + 512;

void reasons(const Status& status) {
  const std::string& text = status.message();
  PUSHROD_CHECK(!text.empty() && text.size() <= kLongestMessage);
  PUSHROD_CHECK(std::none_of(text.begin(), text.end(), [](char c) { return c == '\n'; }));
}

}  // namespace

/// Call, profile and two bytes of HTTP status stand before the body.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) {
    return 0;
  }
  Call call;
  call.kind = static_cast<CallKind>(data[0] % kCallKindCount);
  const EngineFeatures features = profiles()[data[1] % profiles().size()].features();
  http::Response response;
  response.status = 200 + (data[2] + 256 * data[3]) % 400;
  response.contentType = "application/json";
  response.body.assign(reinterpret_cast<const char*>(data) + 4, size - 4);

  (void)readServerInfo(response.body);
  (void)readModels(response.body);
  (void)readAsleep(response.body);
  PUSHROD_CHECK(!errorText(response.body).empty());
  if (call.kind == CallKind::kIdentify || call.kind == CallKind::kMeasureLag) {
    return 0;
  }
  const Reply reply = classify(call, Result<http::Response>(response), features, kWhere);
  PUSHROD_CHECK(reply.kind == call.kind && reply.httpStatus == response.status);
  if (!reply.status.ok()) {
    reasons(reply.status);
    PUSHROD_CHECK(!reply.flag.has_value() && reply.text.empty());
    return 0;
  }
  PUSHROD_CHECK(response.status < 300);
  const bool asksFlag = call.kind == CallKind::kReadPaused || call.kind == CallKind::kReadSession;
  PUSHROD_CHECK(reply.flag.has_value() == asksFlag);
  return 0;
}
