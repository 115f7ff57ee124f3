// SPDX-License-Identifier: Apache-2.0
// Any bytes as a flight record: refused with a place and a reason, or a record that can be
// explained and replayed whatever it says.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/check.h"
#include "tools/explain/replay.h"
#include "tools/explain/story.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pushrod;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = tools::parseFlight(text, "record");
  if (!file) {
    PUSHROD_CHECK(file.status().message().starts_with("record: "));
    PUSHROD_CHECK(file.status().message().find('\n') == std::string::npos);
    return 0;
  }
  PUSHROD_CHECK(tools::replayAll(*file).size() == file->ranks.size());
  PUSHROD_CHECK(tools::explainFlight(*file).starts_with("Push "));
  return 0;
}
