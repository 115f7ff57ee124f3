// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <boost/json/value.hpp>

#include <pushrod/result.h>
#include <pushrod/tensor.h>

namespace pushrod::engines::receiver {

/// Checks the init_info of the shm backend (docs: wire format, section shm).
Status checkShmInit(const boost::json::value& info);

/// Where one host's engines find a chunk.
struct ShmSegment {
  std::string name;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// update_info of the shm backend: one chunk.
struct ShmUpdate {
  std::vector<TensorSpec> tensors;
  std::uint64_t bytes = 0;                     ///< of all tensors together
  std::map<std::string, ShmSegment> segments;  ///< by host id

  /// Refuses sizes that are not those of dtypes and shapes, and segments of another size.
  static Result<ShmUpdate> parse(const boost::json::value& info);
};

}  // namespace pushrod::engines::receiver
