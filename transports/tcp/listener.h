// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <pushrod/data_plane.h>

#include "transports/tcp/address.h"
#include "transports/tcp/fd.h"

namespace pushrod::transports::tcp {

/// A listening, non-blocking socket and where it is bound.
struct Listener {
  Fd fd;
  Address bound;
};

/// Where workers connect to: few listeners (one per distinct local address, so that no wildcard is
/// bound when none was asked for), and what each engine is told.
struct Entrance {
  std::vector<Listener> listeners;
  std::vector<Address> announced;  ///< one per engine, with the real port; never a wildcard
};

/// Binds. `bind` is "auto" (each engine is told the local address that routes to it) or an address
/// or host name of this host; of a wildcard the routing address is announced too. Port 0: the
/// system chooses. A port that is taken fails with failedPrecondition, naming it.
[[nodiscard]] Result<Entrance> openEntrance(const std::vector<PlaneEngine>& engines,
                                            const std::string& bind,
                                            int port);

}  // namespace pushrod::transports::tcp
