// SPDX-License-Identifier: Apache-2.0
// Any bytes as a configuration and as an engine list: an answer within a bound, and what is taken
// must survive its own effective text.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/check.h"
#include "config/agreement_text.h"
#include "config/loader.h"
#include "config/support.h"

namespace {

std::optional<std::string> environment(const std::string& name) {
  return name.size() == 1 ? std::optional<std::string>("value of " + name) : std::nullopt;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pushrod;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto engines = config::parseEngines(text, "engines", environment);
  PUSHROD_CHECK(engines.ok() || !engines.status().message().empty());

  const auto checked = config::parseConfig(text, "fuzz", environment);
  if (!checked) {
    PUSHROD_CHECK(checked.status().message().starts_with("fuzz:"));
    return 0;
  }
  const std::string effective = checked->effective();
  const auto again = config::parseConfig(effective, "effective", environment);
  PUSHROD_CHECK(again.ok());
  PUSHROD_CHECK(again->effective() == effective);
  PUSHROD_CHECK(
      config::firstDifference(config::agreementText(*checked), config::agreementText(*again))
          .empty());
  (void)config::checkSupported(*checked);
  return 0;
}
