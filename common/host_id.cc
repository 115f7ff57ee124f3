// SPDX-License-Identifier: Apache-2.0
#include "common/host_id.h"

#include <fstream>

namespace pushrod::common {

std::string bootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

}  // namespace pushrod::common
