// SPDX-License-Identifier: Apache-2.0
#include "ranks/local_address.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <optional>
#include <system_error>
#include <unistd.h>

namespace pushrod::ranks {

namespace {

std::optional<std::string> numericText(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address->sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  } else if (address->sa_family == AF_INET6) {
    const auto* six = reinterpret_cast<const sockaddr_in6*>(address);
    if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)) {
      return std::nullopt;
    }
    bytes = &six->sin6_addr;
  } else {
    return std::nullopt;
  }
  if (::inet_ntop(address->sa_family, bytes, text.data(), text.size()) == nullptr) {
    return std::nullopt;
  }
  return std::string(text.data());
}

}  // namespace

Result<SocketAddress> socketAddress(const std::string& address, std::uint16_t port) {
  sockaddr_storage storage{};
  auto* four = reinterpret_cast<sockaddr_in*>(&storage);
  if (::inet_pton(AF_INET, address.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    return SocketAddress(storage, sizeof(sockaddr_in));
  }
  auto* six = reinterpret_cast<sockaddr_in6*>(&storage);
  if (::inet_pton(AF_INET6, address.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    return SocketAddress(storage, sizeof(sockaddr_in6));
  }
  return Status(Code::kInvalidArgument, "'" + address + "' is not a numeric address");
}

std::vector<LocalAddress> localAddresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) {
    return {};
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, ::freeifaddrs);
  std::vector<LocalAddress> addresses;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) {
      continue;
    }
    if (const auto text = numericText(entry->ifa_addr)) {
      addresses.push_back({entry->ifa_name, *text});
    }
  }
  std::stable_partition(addresses.begin(), addresses.end(), [](const LocalAddress& each) {
    return each.address.find(':') == std::string::npos;
  });
  return addresses;
}

bool isLocalAddress(const std::string& address) {
  const auto all = localAddresses();
  const bool listed = std::any_of(all.begin(), all.end(), [&address](const LocalAddress& each) {
    return each.address == address;
  });
  // All of 127/8 is this host, though only one address of it is listed.
  return listed || address.rfind("127.", 0) == 0;
}

Result<std::string> routeTo(const std::string& address) {
  constexpr std::uint16_t kAnyPort = 9;
  const auto target = socketAddress(address, kAnyPort);
  if (!target) {
    return target.status();
  }
  const int socket = ::socket(target->family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  const bool found = socket >= 0 && ::connect(socket, target->get(), target->size()) == 0 &&
                     ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) == 0;
  const int error = errno;
  if (socket >= 0) {
    ::close(socket);
  }
  const auto text = found ? numericText(reinterpret_cast<const sockaddr*>(&own)) : std::nullopt;
  if (!text) {
    return Status(Code::kUnavailable,
                  "no interface of this host leads to " + address + " (" +
                      std::error_code(error, std::generic_category()).message() +
                      "); set ranks.interface");
  }
  return *text;
}

std::string hostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "unknown";
}

Result<std::string> addressOfInterface(const std::string& interface) {
  const auto all = localAddresses();
  std::string known;
  for (const LocalAddress& each : all) {
    if (each.interface == interface || each.address == interface) {
      return each.address;
    }
    known += (known.empty() ? "" : ", ") + each.interface + " " + each.address;
  }
  if (socketAddress(interface, 0) && isLocalAddress(interface)) {
    return interface;
  }
  return Status(Code::kInvalidArgument,
                "ranks.interface '" + interface + "' is neither an interface nor an address of " +
                    "host " + hostName() + ", which has " + known);
}

}  // namespace pushrod::ranks
