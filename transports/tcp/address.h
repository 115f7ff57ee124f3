// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/socket.h>

#include <pushrod/result.h>

namespace pushrod::transports::tcp {

/// An IPv4 or IPv6 address with a port. A plain value.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }

  [[nodiscard]] int family() const { return storage.ss_family; }

  [[nodiscard]] std::uint16_t port() const;
  void setPort(std::uint16_t port);
  /// The address without port or brackets, e.g. "10.0.0.5" or "::1".
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool isWildcard() const;
};

/// The host of an engine's URL without IPv6 brackets; empty when there is none.
[[nodiscard]] std::string hostOfUrl(std::string_view url);

/// The numeric address in `text`, or the first that the host name `text` has. A name is looked up
/// by the system's resolver, within its limits.
[[nodiscard]] Result<Address> resolve(const std::string& text);

/// This host's address from which packets to `host` leave: what `host` can connect back to. Sends
/// nothing. Loopback names and addresses give loopback.
[[nodiscard]] Result<Address> localAddressTowards(const std::string& host);

}  // namespace pushrod::transports::tcp
