// SPDX-License-Identifier: Apache-2.0
// Any bytes as an HTTP answer and as a request, whole and cut in two: the same result, within the
// limits, and never more bytes taken than were given.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/check.h"
#include "http/client.h"
#include "http/parser.h"

namespace {

using namespace pushrod::http;
using detail::ParseState;

constexpr detail::ParseLimits kLimits{.header = 512, .body = 1024};

/// Feeds `text` in two pieces as a connection would, with what was not taken given again.
template <typename Parser>
void feed(Parser& parser, std::string_view text, std::size_t cut) {
  std::string pending;
  for (const std::string_view piece : {text.substr(0, cut), text.substr(cut)}) {
    pending += piece;
    while (!pending.empty() && parser.state() == ParseState::kMore) {
      const std::size_t taken = parser.feed(pending);
      PUSHROD_CHECK(taken <= pending.size());
      pending.erase(0, taken);
      if (taken == 0) {
        break;
      }
    }
  }
  const bool bad = parser.state() != ParseState::kMore && parser.state() != ParseState::kDone;
  PUSHROD_CHECK(bad != parser.error().empty());
}

}  // namespace

/// The first byte says where the text is cut.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t cut = std::min<std::size_t>(data[0], text.size());

  detail::ResponseParser whole(kLimits, false);
  detail::ResponseParser inTwo(kLimits, false);
  feed(whole, text, text.size());
  feed(inTwo, text, cut);
  PUSHROD_CHECK((whole.state() == ParseState::kDone) == (inTwo.state() == ParseState::kDone));
  if (whole.state() == ParseState::kDone) {
    const Response first = whole.take();
    const Response second = inTwo.take();
    PUSHROD_CHECK(first.status == second.status && first.body == second.body);
    PUSHROD_CHECK(first.status >= 200 && first.body.size() <= kLimits.body);
  }

  detail::RequestParser request(kLimits);
  feed(request, text, cut);
  if (request.state() == ParseState::kDone) {
    PUSHROD_CHECK(request.take().body.size() <= kLimits.body);
  }

  const auto url = Url::parse(std::string(text));
  PUSHROD_CHECK(url.ok() ? !url->host.empty() && !url->port.empty()
                         : !url.status().message().empty());
  return 0;
}
