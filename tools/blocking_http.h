// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <pushrod/deadline.h>
#include <pushrod/result.h>

#include "http/client.h"
#include "net/io_executor.h"

namespace pushrod::tools {

/// One request to a small local server, waited for on the calling thread (not the executor's), at
/// most `limit`. `base` is the server's address, e.g. "http://127.0.0.1:9464"; a body makes it a
/// POST. A failure says that there was no whole answer; a bad HTTP status is an answer.
Result<http::Response> fetch(net::IoExecutor& executor,
                             const std::string& base,
                             const std::string& target,
                             Duration limit,
                             const std::string& body = "");

}  // namespace pushrod::tools
