// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pushrod::http::test {

/// This program's getaddrinfo answers some names itself: "both.test" is ::1 and then 127.0.0.1,
/// "missing.test" does not exist, "hang.test" blocks until it is released.
void releaseHangingName();
void holdHangingName();

}  // namespace pushrod::http::test
