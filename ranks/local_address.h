// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <sys/socket.h>
#include <vector>

#include <pushrod/result.h>

namespace pushrod::ranks {

/// An address as the system's calls want it.
class SocketAddress {
 public:
  SocketAddress(const sockaddr_storage& storage, socklen_t size) : storage_(storage), size_(size) {}

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }

  [[nodiscard]] socklen_t size() const { return size_; }

  [[nodiscard]] int family() const { return storage_.ss_family; }

 private:
  sockaddr_storage storage_;
  socklen_t size_;
};

/// From a numeric address.
Result<SocketAddress> socketAddress(const std::string& address, std::uint16_t port);

struct LocalAddress {
  std::string interface;
  std::string address;  ///< numeric
};

/// The addresses of this host's interfaces that are up, IPv4 first; no link-local IPv6.
[[nodiscard]] std::vector<LocalAddress> localAddresses();
/// Whether this host owns the numeric address.
[[nodiscard]] bool isLocalAddress(const std::string& address);
/// Our address on the way to `address`; sends nothing.
Result<std::string> routeTo(const std::string& address);
[[nodiscard]] std::string hostName();

/// The numeric address for `ranks.interface` (an address of this host or the name of an
/// interface).
Result<std::string> addressOfInterface(const std::string& interface);

}  // namespace pushrod::ranks
