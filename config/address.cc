// SPDX-License-Identifier: Apache-2.0
#include "config/address.h"

#include <algorithm>
#include <charconv>

namespace pushrod::config {

namespace {

constexpr int kLargestPort = 65535;
constexpr std::size_t kLongestHost = 255;

bool isAlnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::string lowered(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  return lower;
}

std::optional<int> parsePort(std::string_view text) {
  int port = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, port);
  const bool plain = !text.empty() && text[0] != '-' && (text.size() == 1 || text[0] != '0');
  if (!plain || parsed.ec != std::errc() || parsed.ptr != end || port > kLargestPort) {
    return std::nullopt;
  }
  return port;
}

/// The parts of an engine's URL after its scheme.
struct UrlParts {
  bool tls = false;
  std::string_view authority;
  std::string_view path;  ///< with its "/", without trailing ones
};

std::optional<UrlParts> splitUrl(std::string_view url) {
  UrlParts parts;
  if (url.starts_with("https://")) {
    parts.tls = true;
    url.remove_prefix(8);
  } else if (url.starts_with("http://")) {
    url.remove_prefix(7);
  } else {
    return std::nullopt;
  }
  const std::size_t slash = std::min(url.find('/'), url.size());
  parts.authority = url.substr(0, slash);
  parts.path = url.substr(slash);
  while (!parts.path.empty() && parts.path.back() == '/') {
    parts.path.remove_suffix(1);
  }
  return parts;
}

bool isOneServer(std::string_view text) {
  const auto parts = splitHostPort(text);
  return parts && parts->port > 0;
}

}  // namespace

bool isHost(std::string_view text) {
  if (text.empty() || text.size() > kLongestHost) {
    return false;
  }
  if (text.front() == '[') {
    const std::string_view inner = text.substr(1);
    return inner.size() > 2 && inner.back() == ']' &&
           std::all_of(inner.begin(),
                       inner.end() - 1,
                       [](char c) {
                         return isAlnum(c) || c == ':' || c == '.' || c == '%' || c == '-' ||
                                c == '_';
                       }) &&
           std::count(inner.begin(), inner.end(), ':') >= 2;
  }
  return isAlnum(text.front()) && std::all_of(text.begin(), text.end(), [](char c) {
           return isAlnum(c) || c == '.' || c == '-' || c == '_';
         });
}

std::optional<HostPort> splitHostPort(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  const auto port = parsePort(text.substr(colon + 1));
  if (!port || !isHost(text.substr(0, colon))) {
    return std::nullopt;
  }
  return HostPort{std::string(text.substr(0, colon)), *port};
}

Wrong checkEngineUrl(std::string_view url) {
  if (url.find('@') != std::string_view::npos) {
    return "holds a user name or password, which do not belong into an address; name a token's "
           "variable in "
           "engines.token_env";
  }
  const auto parts = splitUrl(url);
  if (!parts) {
    return "is not an engine's address; write http://HOST:PORT or https://HOST:PORT";
  }
  const bool path = std::all_of(parts->path.begin(), parts->path.end(), [](char c) {
    return c > ' ' && c < 0x7F && c != '?' && c != '#' && c != '"' && c != '\\';
  });
  if (!path) {
    return "has a query, a fragment or a character that a path prefix cannot have";
  }
  if (!isHost(parts->authority) && !isOneServer(parts->authority)) {
    return "has no usable host and port; write http://HOST:PORT, with an IPv6 address "
           "in brackets and a port from 1 to 65535";
  }
  return std::nullopt;
}

std::string engineAddress(std::string_view url) {
  const auto parts = splitUrl(url);
  if (!parts) {
    return std::string(url);
  }
  std::string address = lowered(parts->authority);
  if (isHost(parts->authority)) {
    address += parts->tls ? ":443" : ":80";
  }
  return address + std::string(parts->path);
}

Wrong checkStore(std::string_view store) {
  const std::string refusal =
      "is not a meeting place; write auto, file:///PATH, tcp://HOST:PORT or redis://HOST:PORT";
  if (store == "auto") {
    return std::nullopt;
  }
  if (store.starts_with("file://")) {
    const std::string_view path = store.substr(7);
    return path.size() > 1 && path[0] == '/' ? Wrong() : refusal;
  }
  for (const std::string_view scheme : {"tcp://", "redis://"}) {
    if (store.starts_with(scheme)) {
      return isOneServer(store.substr(scheme.size())) ? Wrong() : refusal;
    }
  }
  return refusal;
}

Wrong checkListen(std::string_view listen) {
  if (listen.empty() || splitHostPort(listen)) {
    return std::nullopt;
  }
  return "is not an address to listen on; write HOST:PORT (0.0.0.0:PORT for all "
         "interfaces, port 0 for any free one) or \"\" for none";
}

Wrong checkBind(std::string_view bind) {
  const bool v6 =
      std::count(bind.begin(), bind.end(), ':') >= 2 && isHost("[" + std::string(bind) + "]");
  if (isHost(bind) || v6) {
    return std::nullopt;
  }
  return "is not an address; write auto, an IP address or a host name, without a port";
}

Wrong normaliseProxy(std::string& proxy) {
  if (proxy.empty()) {
    return std::nullopt;
  }
  std::string_view rest = proxy;
  if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
    if (!rest.empty() && rest.back() == '/') {
      rest.remove_suffix(1);
    }
  }
  if (!isOneServer(rest)) {
    return "is not a proxy's address; write http://HOST:PORT, without user name or password";
  }
  proxy = std::string(rest);
  return std::nullopt;
}

}  // namespace pushrod::config
