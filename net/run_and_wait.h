// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "net/io_executor.h"

namespace pushrod::net {

/// Runs `task` on the control thread and returns when it has ended; inline on that thread itself.
/// For making and destroying what lives there: `task` may use the caller's variables, so the wait
/// has no limit of its own and ends because no task on the control thread blocks.
void runAndWait(IoExecutor& executor, const std::function<void()>& task);

}  // namespace pushrod::net
