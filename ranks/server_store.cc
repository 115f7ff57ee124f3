// SPDX-License-Identifier: Apache-2.0
#include "ranks/server_store.h"

#include <utility>

namespace pushrod::ranks {

ServerStore::ServerStore(std::vector<std::string> addresses, std::uint16_t port, std::string name)
    : addresses_(std::move(addresses)), port_(port), name_(std::move(name)) {}

Status ServerStore::connect(Deadline deadline) {
  if (connected()) {
    return Status();
  }
  Status last = failed("has no address");
  for (const std::string& address : addresses_) {
    last = connectTo(address, deadline);
    if (last.ok()) {
      break;
    }
    disconnect();
  }
  return last;
}

Status ServerStore::failed(const std::string& why, Code code) const {
  return Status(code, "the ranks' store " + name_ + " " + why);
}

Status ServerStore::late(const std::string& what) const {
  return failed("did not " + what + " in time", Code::kDeadlineExceeded);
}

}  // namespace pushrod::ranks
