// SPDX-License-Identifier: Apache-2.0
#include "ranks/store_address.h"

#include <charconv>
#include <optional>

namespace pushrod::ranks {

namespace {

constexpr int kLastPort = 65535;
constexpr std::uint16_t kRedisPort = 6379;

std::optional<int> portNumber(const std::string& text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end || value < 1 ||
      value > kLastPort) {
    return std::nullopt;
  }
  return value;
}

Status refused(const std::string& text, const std::string& why) {
  return Status(Code::kInvalidArgument,
                "ranks.store '" + text + "' " + why +
                    "; give auto, file:///path, tcp://host:port or redis://host:port");
}

Result<StoreAddress> parseHostPort(const std::string& text,
                                   const std::string& rest,
                                   StoreKind kind) {
  StoreAddress address;
  address.kind = kind;
  std::string port;
  if (!rest.empty() && rest.front() == '[') {
    const auto end = rest.find(']');
    if (end == std::string::npos) {
      return refused(text, "has no ] after its address");
    }
    address.host = rest.substr(1, end - 1);
    if (end + 1 < rest.size()) {
      if (rest[end + 1] != ':') {
        return refused(text, "has something other than a port after ]");
      }
      port = rest.substr(end + 2);
      if (port.empty()) {
        return refused(text, "has no port after its :");
      }
    }
  } else {
    const auto colon = rest.find(':');
    address.host = rest.substr(0, colon);
    port = colon == std::string::npos ? std::string() : rest.substr(colon + 1);
  }
  if (address.host.empty() || address.host.find_first_of("/@ ") != std::string::npos) {
    return refused(text, "has no usable host");
  }
  if (port.empty() && kind == StoreKind::kRedis) {
    address.port = kRedisPort;
    return address;
  }
  const auto number = portNumber(port);
  if (!number) {
    return refused(text, "has no port from 1 to 65535");
  }
  address.port = static_cast<std::uint16_t>(*number);
  return address;
}

Result<StoreAddress> fromMaster(const Environment& environment) {
  const auto host = environment("MASTER_ADDR");
  const auto port = environment("MASTER_PORT");
  for (const auto& [name, value] : {std::pair("MASTER_ADDR", host), {"MASTER_PORT", port}}) {
    if (!value || value->empty()) {
      return Status(Code::kInvalidArgument,
                    "ranks.store is auto, but environment variable " + std::string(name) + " is " +
                        (value ? "empty" : "not set") +
                        "; set MASTER_ADDR and MASTER_PORT to a host of the job and a port whose "
                        "successor is free, or set ranks.store");
    }
  }
  const auto number = portNumber(*port);
  if (!number || *number == kLastPort) {
    return Status(Code::kInvalidArgument,
                  "environment variable MASTER_PORT is '" + *port +
                      "', not a port from 1 to 65534; correct it or set ranks.store");
  }
  StoreAddress address;
  address.kind = StoreKind::kTcp;
  const bool bracketed = host->size() > 2 && host->front() == '[' && host->back() == ']';
  address.host = bracketed ? host->substr(1, host->size() - 2) : *host;
  address.port = static_cast<std::uint16_t>(*number + 1);
  address.fromMaster = true;
  return address;
}

bool beginsWith(const std::string& text, const std::string& prefix) {
  return text.rfind(prefix, 0) == 0;
}

}  // namespace

std::string StoreAddress::toString() const {
  if (kind == StoreKind::kFile) {
    return "file://" + path;
  }
  const std::string shown = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return (kind == StoreKind::kTcp ? "tcp://" : "redis://") + shown + ":" + std::to_string(port);
}

Result<StoreAddress> parseStoreAddress(const std::string& text,
                                       const std::string& privateDirectory,
                                       const Environment& environment) {
  if (text == "auto") {
    if (privateDirectory.empty()) {
      return fromMaster(environment);
    }
    StoreAddress address;
    address.path = privateDirectory;
    address.isPrivate = true;
    return address;
  }
  const std::string file = "file://";
  const std::string tcp = "tcp://";
  const std::string redis = "redis://";
  if (beginsWith(text, file)) {
    StoreAddress address;
    address.path = text.substr(file.size());
    if (address.path.size() < 2 || address.path.front() != '/') {
      return refused(text, "names no absolute path of a folder");
    }
    return address;
  }
  if (beginsWith(text, tcp)) {
    return parseHostPort(text, text.substr(tcp.size()), StoreKind::kTcp);
  }
  if (beginsWith(text, redis)) {
    return parseHostPort(text, text.substr(redis.size()), StoreKind::kRedis);
  }
  return refused(text, "is none of the known forms");
}

}  // namespace pushrod::ranks
