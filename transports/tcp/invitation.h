// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pushrod/data_plane.h>
#include <pushrod/result.h>

#include "common/ids.h"
#include "transports/tcp/roster.h"

namespace pushrod::transports::tcp {

/// What every source must know of a channel, as rank 0 tells it.
struct Invitation {
  std::vector<int> owners;           ///< ranks, ascending: the sources
  std::vector<common::Id> ids;       ///< of the roster's channels
  std::vector<PlaneEngine> engines;  ///< of their URLs only the host travels

  [[nodiscard]] std::string encode() const;
  /// The inverse; internal for any other text.
  static Result<Invitation> decode(std::string_view text);
};

/// Where one source listens, one endpoint per engine.
[[nodiscard]] std::string encodeEndpoints(const std::vector<Endpoint>& endpoints);
[[nodiscard]] Result<std::vector<Endpoint>> decodeEndpoints(std::string_view text);

}  // namespace pushrod::transports::tcp
