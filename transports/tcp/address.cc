// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/address.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <system_error>

#include "transports/tcp/fd.h"

namespace pushrod::transports::tcp {

namespace {

/// Any port will do: connecting a datagram socket sends nothing, it only chooses a route.
constexpr std::uint16_t kRoutePort = 9;

template <typename Family>
Family view(const Address& address) {
  Family result{};
  std::memcpy(&result, &address.storage, sizeof result);
  return result;
}

bool isLocalhost(const std::string& host) {
  return host == "localhost" || host == "ip6-localhost" || host == "localhost.localdomain";
}

/// The local end of a route to `target`; not valid when there is no route.
Address routeTo(Address target) {
  Address local;
  target.setPort(kRoutePort);
  const Fd probe(::socket(target.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe.valid() || ::connect(probe.get(), target.get(), target.length) != 0) {
    return local;
  }
  local.length = sizeof local.storage;
  if (::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&local.storage), &local.length) != 0) {
    local.length = 0;
  }
  local.setPort(0);
  return local;
}

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<AddressList> lookUp(const std::string& text) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(text.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    return Status(Code::kUnavailable,
                  "the host name '" + text + "' cannot be resolved: " + ::gai_strerror(error));
  }
  return AddressList(found, &::freeaddrinfo);
}

Address fromInfo(const addrinfo& info) {
  Address address;
  std::memcpy(&address.storage, info.ai_addr, info.ai_addrlen);
  address.length = info.ai_addrlen;
  return address;
}

}  // namespace

std::uint16_t Address::port() const {
  return ntohs(family() == AF_INET6 ? view<sockaddr_in6>(*this).sin6_port
                                    : view<sockaddr_in>(*this).sin_port);
}

void Address::setPort(std::uint16_t port) {
  if (family() == AF_INET6) {
    auto v6 = view<sockaddr_in6>(*this);
    v6.sin6_port = htons(port);
    std::memcpy(&storage, &v6, sizeof v6);
  } else {
    auto v4 = view<sockaddr_in>(*this);
    v4.sin_port = htons(port);
    std::memcpy(&storage, &v4, sizeof v4);
  }
}

std::string Address::text() const {
  char buffer[INET6_ADDRSTRLEN] = {};
  if (family() == AF_INET6) {
    const auto v6 = view<sockaddr_in6>(*this);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, buffer, sizeof buffer);
  } else {
    const auto v4 = view<sockaddr_in>(*this);
    ::inet_ntop(AF_INET, &v4.sin_addr, buffer, sizeof buffer);
  }
  return buffer;
}

bool Address::isWildcard() const {
  if (family() == AF_INET6) {
    const auto v6 = view<sockaddr_in6>(*this);
    return IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr) != 0;
  }
  return view<sockaddr_in>(*this).sin_addr.s_addr == htonl(INADDR_ANY);
}

std::string hostOfUrl(std::string_view url) {
  const std::size_t scheme = url.find("://");
  std::string_view rest = scheme == std::string_view::npos ? url : url.substr(scheme + 3);
  rest = rest.substr(0, rest.find_first_of("/?#"));
  if (const std::size_t user = rest.rfind('@'); user != std::string_view::npos) {
    rest = rest.substr(user + 1);
  }
  if (!rest.empty() && rest.front() == '[') {
    const std::size_t end = rest.find(']');
    return std::string(rest.substr(1, end == std::string_view::npos ? end : end - 1));
  }
  return std::string(rest.substr(0, rest.find(':')));
}

Result<Address> resolve(const std::string& text) {
  Result<AddressList> list = lookUp(text);
  if (!list) {
    return list.status();
  }
  return fromInfo(**list);
}

Result<Address> localAddressTowards(const std::string& host) {
  if (isLocalhost(host)) {
    // The name may give ::1 first while nobody listens there; 127.0.0.1 is on every loopback.
    return resolve("127.0.0.1");
  }
  Result<AddressList> list = lookUp(host);
  if (!list) {
    return list.status();
  }
  for (const addrinfo* info = list->get(); info != nullptr; info = info->ai_next) {
    const Address local = routeTo(fromInfo(*info));
    if (local.length != 0 && !local.isWildcard()) {
      return local;
    }
  }
  return Status(Code::kUnavailable, "no local address routes to '" + host + "'");
}

}  // namespace pushrod::transports::tcp
