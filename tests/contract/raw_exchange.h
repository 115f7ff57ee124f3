// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tests/contract/transcript.h"

namespace pushrod::contract {

/// An HTTP answer as it came, and what became of the connection.
struct RawAnswer {
  int status = 0;  ///< 0: none within the limit
  std::string head;
  std::string body;
  bool closed = false;  ///< by the server, after the answer
};

/// Sends one request on a connection of its own, not through the product's client. `watchMs` is how
/// long the connection is watched for its end after the answer. Empty `type` and `body`: no body.
[[nodiscard]] RawAnswer exchange(std::uint16_t port,
                                 const std::string& method,
                                 const std::string& target,
                                 const std::string& body = "",
                                 const std::string& type = "application/json",
                                 int watchMs = 30);

/// Asks a server what every passage asks and compares: status, body, and whether the connection is
/// closed after it, as it is after an error that the server did not expect. Fails the test, naming
/// the passage's line, for each difference.
void expectAnswers(std::uint16_t port, const std::vector<Passage>& passages);

}  // namespace pushrod::contract
