// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace pushrod::sim::known_bad {

/// The obvious loop, over the same seams: every rank gathers all tensors, rank 0 sends each, and
/// only then do the ranks tell each other how it went. Returns what it hangs in when the
/// `failingPut`-th send fails (0: none does); empty: it ends.
[[nodiscard]] std::string sendThenAgree(int ranks, std::size_t failingPut);

}  // namespace pushrod::sim::known_bad
