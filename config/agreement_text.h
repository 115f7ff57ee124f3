// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <pushrod/config.h>

namespace pushrod::config {

/// The keys that all ranks must have alike (ruling P11), one "key: value" line each, in the table's
/// order. Ranks compare its hash; on a difference rank 0 hands out the text.
[[nodiscard]] std::string agreementText(const Config& config);

/// The first key in which two such texts differ, as "transport.buffer: 2MiB here, 1GiB on rank 0";
/// empty when they are equal. Any text is taken.
[[nodiscard]] std::string firstDifference(std::string_view mine, std::string_view rank0);

}  // namespace pushrod::config
