// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <pushrod/deadline.h>
#include <pushrod/result.h>

namespace pushrod::net {

class IoExecutor;

/// Looks a host name up; numeric addresses (also in brackets) are returned as they are. `done` is
/// called once on the control thread with at least one numeric address, or with unavailable or
/// deadlineExceeded. May be called from any thread.
void resolve(IoExecutor& executor,
             const std::string& host,
             Deadline deadline,
             std::function<void(Result<std::vector<std::string>>)> done);

}  // namespace pushrod::net
