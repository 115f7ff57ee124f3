// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/listener.h"

#include <cerrno>
#include <limits>
#include <netinet/in.h>
#include <sys/socket.h>
#include <system_error>

namespace pushrod::transports::tcp {

namespace {

std::string hostPort(const Address& address, int port) {
  const std::string host = address.text();
  return (address.family() == AF_INET6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Status cannotListen(const Address& address, int port, int error) {
  std::string text = "cannot listen on " + hostPort(address, port) +
                     " for the engines' tcp connections: " + std::generic_category().message(error);
  if (error == EADDRINUSE) {
    text += "; port " + std::to_string(port) +
            " (transport.port) is taken, choose another or 0 for one chosen by the system";
  } else {
    text += "; check transport.bind and transport.port";
  }
  return {Code::kFailedPrecondition, std::move(text)};
}

Result<Listener> listenOn(Address address, int port) {
  address.setPort(static_cast<std::uint16_t>(port));
  Listener listener;
  listener.fd =
      Fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  // A fixed port must be usable again while connections of the last channel are in TIME_WAIT; a
  // port that somebody listens on stays refused.
  const int on = 1;
  if (!listener.fd.valid() ||
      ::setsockopt(listener.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(listener.fd.get(), address.get(), address.length) != 0 ||
      ::listen(listener.fd.get(), SOMAXCONN) != 0) {
    return cannotListen(address, port, errno);
  }
  listener.bound.length = sizeof listener.bound.storage;
  if (::getsockname(listener.fd.get(),
                    reinterpret_cast<sockaddr*>(&listener.bound.storage),
                    &listener.bound.length) != 0) {
    return cannotListen(address, port, errno);
  }
  return listener;
}

Result<Address> routeToEngine(const PlaneEngine& engine) {
  const std::string host = hostOfUrl(engine.url);
  if (host.empty()) {
    return Status(Code::kInvalidArgument,
                  "engine '" + engine.name +
                      "' has no URL, so the address to announce to it is not known; set "
                      "transport.bind");
  }
  Result<Address> local = localAddressTowards(host);
  if (!local) {
    return local.status().prefixed("the address to announce to engine '" + engine.name + "'");
  }
  return local;
}

/// One listener per distinct address of the engines' routes.
Status listenPerRoute(const std::vector<PlaneEngine>& engines, int port, Entrance& entrance) {
  for (const PlaneEngine& engine : engines) {
    Result<Address> local = routeToEngine(engine);
    if (!local) {
      return local.status();
    }
    const Address* bound = nullptr;
    for (const Listener& listener : entrance.listeners) {
      if (listener.bound.text() == local->text()) {
        bound = &listener.bound;
      }
    }
    if (bound == nullptr) {
      Result<Listener> listener = listenOn(*local, port);
      if (!listener) {
        return listener.status();
      }
      entrance.listeners.push_back(std::move(*listener));
      bound = &entrance.listeners.back().bound;
    }
    entrance.announced.push_back(*bound);
  }
  return {};
}

}  // namespace

Result<Entrance> openEntrance(const std::vector<PlaneEngine>& engines,
                              const std::string& bind,
                              int port) {
  if (port < 0 || port > std::numeric_limits<std::uint16_t>::max()) {
    return Status(Code::kInvalidArgument,
                  "transport.port " + std::to_string(port) + " is not a port (0 to 65535)");
  }
  Entrance entrance;
  if (bind.empty() || bind == "auto") {
    if (Status bound = listenPerRoute(engines, port, entrance); !bound.ok()) {
      return bound;
    }
    return entrance;
  }
  Result<Address> given = resolve(bind);
  if (!given) {
    return given.status().prefixed("transport.bind");
  }
  Result<Listener> listener = listenOn(*given, port);
  if (!listener) {
    return listener.status();
  }
  for (const PlaneEngine& engine : engines) {
    Address address = listener->bound;
    if (address.isWildcard()) {
      Result<Address> route = routeToEngine(engine);
      if (!route) {
        return route.status();
      }
      route->setPort(address.port());
      address = *route;
    }
    entrance.announced.push_back(address);
  }
  entrance.listeners.push_back(std::move(*listener));
  return entrance;
}

}  // namespace pushrod::transports::tcp
