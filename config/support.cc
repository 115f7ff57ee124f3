// SPDX-License-Identifier: Apache-2.0
#include "config/support.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "config/key_table.h"

namespace pushrod::config {

namespace {

/// Keys that this build reads but knows only with their default.
constexpr std::array<std::string_view, 2> kDefaultOnly = {"transport.load_plan", "transport.group"};

std::string missing(const std::string& key, const std::string& value) {
  return key + ": " + value + " is not in this build";
}

bool isBuilt(TransportKind kind) {
  return kind == TransportKind::kTcp || kind == TransportKind::kShm;
}

/// What is wrong with the transports, empty when this build has them all. The default counts only
/// where an engine uses it.
std::string transportFault(const Config& config) {
  const auto& list = config.engines.list;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].transport && !isBuilt(*list[i].transport)) {
      return missing("engines.list[" + std::to_string(i) + "].transport",
                     std::string(transportName(*list[i].transport))) +
             ", which sends over tcp and shm; set it to tcp or shm";
    }
  }
  const bool kindUsed = list.empty() || std::any_of(list.begin(), list.end(), [](const auto& e) {
                          return !e.transport.has_value();
                        });
  if (kindUsed && !isBuilt(config.transport.kind)) {
    return missing("transport.kind", std::string(transportName(config.transport.kind))) +
           ", which sends over tcp and shm; set transport.kind: tcp or shm";
  }
  return {};
}

/// Owners send over tcp alone; empty when that is so.
std::string ownersFault(const Config& config) {
  const auto& list = config.engines.list;
  const bool otherKind = config.transport.kind != TransportKind::kTcp &&
                         (list.empty() || std::any_of(list.begin(), list.end(), [](const auto& e) {
                            return !e.transport;
                          }));
  const bool otherEngine = std::any_of(list.begin(), list.end(), [](const auto& e) {
    return e.transport.value_or(TransportKind::kTcp) != TransportKind::kTcp;
  });
  return config.transport.owners && (otherKind || otherEngine)
             ? missing("transport.owners", "true") +
                   " but over tcp; set transport.kind: tcp for every engine, or remove it"
             : std::string();
}

}  // namespace

Status checkSupported(const Config& config) {
  std::string text = transportFault(config);
  const Config defaults;
  const auto add = [&text](const std::string& fault) {
    text += (text.empty() ? "" : "; ") + fault;
  };
  for (const Key<Config>& key : configKeys()) {
    const bool limited =
        std::find(kDefaultOnly.begin(), kDefaultOnly.end(), key.path) != kDefaultOnly.end();
    const std::string value = key.write(config, 0);
    const std::string only = key.write(defaults, 0);
    if (limited && value != only) {
      add(missing(key.path, value) + "; set it to " + only + " or remove it");
    }
  }
  if (const std::string fault = ownersFault(config); !fault.empty()) {
    add(fault);
  }
  return text.empty() ? Status() : Status(Code::kInvalidArgument, text);
}

}  // namespace pushrod::config
