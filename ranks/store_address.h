// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <pushrod/result.h>

#include "ranks/identity.h"

namespace pushrod::ranks {

enum class StoreKind : std::uint8_t { kFile, kTcp, kRedis };

/// Where a store is, from `ranks.store`.
struct StoreAddress {
  StoreKind kind = StoreKind::kFile;
  std::string path;  ///< kFile
  std::string host;  ///< the others; a name or a numeric address without brackets
  std::uint16_t port = 0;
  bool isPrivate = false;   ///< a folder of this host's own ranks only
  bool fromMaster = false;  ///< made from MASTER_ADDR and MASTER_PORT

  [[nodiscard]] std::string toString() const;
};

/// `text` is auto, file:///path, tcp://host:port or redis://host[:port]. auto: the private
/// directory when one is given, else $MASTER_ADDR at $MASTER_PORT + 1.
Result<StoreAddress> parseStoreAddress(const std::string& text,
                                       const std::string& privateDirectory,
                                       const Environment& environment);

}  // namespace pushrod::ranks
