// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <string_view>

#include "http/client.h"

namespace pushrod::http {
namespace {

Status refused(const std::string& text, const std::string& why) {
  return Status(Code::kInvalidArgument, "the address \"" + text + "\" " + why);
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool isHostCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

bool isPathCharacter(char c) {
  constexpr std::string_view kForbidden = "\"<>\\^`{|}?#";
  return c > ' ' && c < 0x7f && kForbidden.find(c) == std::string_view::npos;
}

/// Hexadecimal digits, colons and dots, then perhaps a zone; the connection's own parser has the
/// last word on it.
bool isIpv6Text(std::string_view text) {
  const auto zone = text.find('%');
  const std::string_view address = text.substr(0, zone);
  const bool plain = std::all_of(address.begin(), address.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == ':' || c == '.';
  });
  if (!plain || std::count(address.begin(), address.end(), ':') < 2) {
    return false;
  }
  if (zone == std::string_view::npos) {
    return true;
  }
  const std::string_view name = text.substr(zone + 1);
  return !name.empty() && std::all_of(name.begin(), name.end(), isHostCharacter);
}

/// Splits "host", "host:port", "[v6]" or "[v6]:port". Returns why not, or nothing.
std::string splitAuthority(std::string authority, Url& url) {
  std::transform(authority.begin(), authority.end(), authority.begin(), lower);
  std::string_view rest = authority;
  if (!rest.empty() && rest.front() == '[') {
    const auto end = rest.find(']');
    if (end == std::string_view::npos) {
      return "has an opening bracket without its end";
    }
    url.host = std::string(rest.substr(1, end - 1));
    if (const auto escaped = url.host.find("%25"); escaped != std::string::npos) {
      url.host.erase(escaped + 1, 2);
    }
    if (!isIpv6Text(url.host)) {
      return "has no IPv6 address between its brackets";
    }
    rest.remove_prefix(end + 1);
  } else {
    if (std::count(rest.begin(), rest.end(), ':') > 1) {
      return "has a bare IPv6 address; put it between brackets";
    }
    url.host = std::string(rest.substr(0, rest.find(':')));
    if (url.host.empty()) {
      return "names no host";
    }
    if (!std::all_of(url.host.begin(), url.host.end(), isHostCharacter)) {
      return "has a host name with a character that is not allowed there";
    }
    rest.remove_prefix(url.host.size());
  }
  if (rest.empty()) {
    return "";
  }
  if (rest.front() != ':') {
    return "has text between the host and the port";
  }
  rest.remove_prefix(1);
  unsigned port = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), port);
  if (error != std::errc() || end != rest.data() + rest.size() || port == 0 || port > 65535) {
    return "has a port that is not a number from 1 to 65535";
  }
  url.port = std::to_string(port);
  return "";
}

bool startsWith(const std::string& text, std::string_view scheme) {
  return text.size() >= scheme.size() &&
         std::equal(scheme.begin(), scheme.end(), text.begin(), [](char a, char b) {
           return a == lower(b);
         });
}

}  // namespace

Result<Url> Url::parse(const std::string& text) {
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kTls = "https://";
  Url url;
  url.tls = startsWith(text, kTls);
  if (!url.tls && !startsWith(text, kPlain)) {
    return refused(text, "must begin with http:// or https://");
  }
  url.port = url.tls ? "443" : "80";
  const std::string rest = text.substr(url.tls ? kTls.size() : kPlain.size());
  const auto slash = rest.find_first_of("/?#");
  const std::string authority = rest.substr(0, slash);
  if (authority.find('@') != std::string::npos) {
    // Not repeated in the text: it may hold a password.
    return Status(Code::kInvalidArgument,
                  "an address must not hold a user name or password; give a token instead");
  }
  if (std::string why = splitAuthority(authority, url); !why.empty()) {
    return refused(text, why);
  }
  url.prefix = slash == std::string::npos ? "" : rest.substr(slash);
  if (!std::all_of(url.prefix.begin(), url.prefix.end(), isPathCharacter)) {
    return refused(text, "may hold a path only, without a query, fragment, space or quote");
  }
  while (!url.prefix.empty() && url.prefix.back() == '/') {
    url.prefix.pop_back();
  }
  return url;
}

std::string Url::authority() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + port;
}

}  // namespace pushrod::http
