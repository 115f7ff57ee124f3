// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pushrod::config {

/// Checks of the address forms that configuration values take. Each returns what is wrong, for use
/// after "KEY: VALUE " and so without the value, or nullopt. Nothing is resolved.
using Wrong = std::optional<std::string>;

struct HostPort {
  std::string host;  ///< IPv6 in brackets
  int port = 0;
};

/// "host:port" or "[v6]:port" with a port from 0 to 65535.
[[nodiscard]] std::optional<HostPort> splitHostPort(std::string_view text);
/// A host name, an IPv4 address or a bracketed IPv6 address.
[[nodiscard]] bool isHost(std::string_view text);

/// An engine's address: http:// or https://, host, optional port, optional path prefix.
[[nodiscard]] Wrong checkEngineUrl(std::string_view url);
/// host:port, the scheme's port where none is written, and the path prefix. For checked URLs.
[[nodiscard]] std::string engineAddress(std::string_view url);

/// auto, file:///path, tcp://host:port or redis://host:port.
[[nodiscard]] Wrong checkStore(std::string_view store);
/// Empty, or host:port.
[[nodiscard]] Wrong checkListen(std::string_view listen);
/// auto, an IP address or a host name.
[[nodiscard]] Wrong checkBind(std::string_view bind);
/// Empty, host:port or http://host:port; brought into the form host:port.
[[nodiscard]] Wrong normaliseProxy(std::string& proxy);

}  // namespace pushrod::config
