// SPDX-License-Identifier: Apache-2.0
#include "tools/engine_orders.h"

#include <algorithm>
#include <map>
#include <memory>
#include <openssl/evp.h>
#include <optional>
#include <utility>

#include "common/log.h"
#include "config/loader.h"
#include "tools/engine_group.h"
#include "tools/sources/strict_json.h"

namespace pushrod::tools {
namespace {

using Member = EngineGroup::Member;

/// The order on its way over the engines. Lines are kept for those that are ordered about; resume
/// looks at all.
class OrderRun {
 public:
  OrderRun(EngineGroup& group, const TimeoutsConfig& limits, std::string only)
      : group_(group), limits_(limits), only_(std::move(only)) {}

  std::vector<EngineLine> closeSession();
  std::vector<EngineLine> pause();
  std::vector<EngineLine> resume(bool force);
  std::vector<EngineLine> version();
  std::vector<EngineLine> checksums();

 private:
  void identify() { group_.askAll(CallKind::kIdentify, limits_.connect); }

  /// P16: late replies are measured first, and the flag is read, never tried out.
  void readSessions() {
    group_.askAll(CallKind::kMeasureLag, limits_.connect);
    group_.askAll(CallKind::kReadSession, limits_.connect);
    for (const Member& member : group_.members()) {
      sessionOpen_.push_back(member.failure && member.last.flag.value_or(false));
    }
  }

  void readVersions() {
    group_.ask(
        [this](std::size_t i) {
          const Member& member = group_.members()[i];
          const bool can = member.identity != nullptr && member.identity->features.hasVersion;
          return can ? std::optional(CallKind::kReadVersion) : std::nullopt;
        },
        limits_.connect);
    for (const Member& member : group_.members()) {
      const bool known = member.failure && member.last.kind == CallKind::kReadVersion;
      versions_.push_back(known ? member.last.text : "");
    }
  }

  [[nodiscard]] bool ordered(const Member& member) const {
    return only_.empty() || member.name == only_;
  }

  std::vector<EngineLine> lines(const std::function<std::string(std::size_t)>& text);

  EngineGroup& group_;
  const TimeoutsConfig& limits_;
  const std::string only_;
  std::vector<bool> sessionOpen_;
  std::vector<std::string> versions_;
};

std::vector<EngineLine> OrderRun::lines(const std::function<std::string(std::size_t)>& text) {
  std::vector<EngineLine> all;
  for (std::size_t i = 0; i < group_.members().size(); ++i) {
    const Member& member = group_.members()[i];
    if (!ordered(member)) {
      continue;
    }
    const bool good = member.failure.ok();
    all.push_back(
        {member.name + ": " + (good ? text(i) : "failed: " + member.failure.message()), !good});
  }
  return all;
}

std::vector<EngineLine> OrderRun::closeSession() {
  identify();
  readSessions();
  group_.ask(
      [this](std::size_t i) {
        return sessionOpen_[i] ? std::optional(CallKind::kFinish) : std::nullopt;
      },
      limits_.request);
  return lines([this](std::size_t i) -> std::string {
    return sessionOpen_[i] ? "session closed, without a version; its weights may be mixed, push "
                             "before resuming it"
                           : "no session was open";
  });
}

std::vector<EngineLine> OrderRun::pause() {
  identify();
  group_.askAll(CallKind::kPause, limits_.pause);
  group_.askAll(CallKind::kReadPaused, limits_.pause);
  for (Member& member : group_.members()) {
    if (member.failure && !member.last.flag.value_or(false)) {
      member.failure = Status(Code::kUnavailable,
                              "it answered the pause, but says that it is not paused; try again");
    }
  }
  return lines([](std::size_t) { return "paused"; });
}

std::vector<EngineLine> OrderRun::resume(bool force) {
  identify();
  readSessions();
  readVersions();
  const std::vector<std::string> objections = versionObjections(versions_);
  for (std::size_t i = 0; i < group_.members().size(); ++i) {
    Member& member = group_.members()[i];
    if (!member.failure) {
      continue;
    }
    if (sessionOpen_[i]) {
      member.failure = Status(Code::kFailedPrecondition,
                              "a session is open, and generation inside one kills the engine; "
                              "close-session, then push");
    } else if (!force && !objections[i].empty()) {
      member.failure =
          Status(Code::kFailedPrecondition, objections[i] + "; push again, or resume --force");
    }
  }
  group_.ask(
      [this](std::size_t i) {
        return ordered(group_.members()[i]) ? std::optional(CallKind::kResume) : std::nullopt;
      },
      limits_.resume);
  return lines([this](std::size_t i) {
    return "resumed, version " + (versions_[i].empty() ? "not known" : versions_[i]);
  });
}

std::vector<EngineLine> OrderRun::version() {
  identify();
  readVersions();
  for (Member& member : group_.members()) {
    if (member.failure && member.last.kind != CallKind::kReadVersion) {
      member.failure = Status(Code::kFailedPrecondition,
                              "release " + member.identity->release + " has no version route");
    }
  }
  return lines([this](std::size_t i) { return "version " + versions_[i]; });
}

/// One digest over all parameters, in the order of their names; equal on equal replicas.
std::string digestOfAll(const JsonNode& sums) {
  std::map<std::string, std::string> sorted;
  std::size_t empty = 0;
  for (std::size_t i = 0; i < sums.items.size(); ++i) {
    sorted[sums.keys[i]] = sums.items[i].text;
    // SHA-256 of nothing: a parameter whose bytes the server cannot see.
    empty += sums.items[i].text.starts_with("e3b0c44298fc1c14") ? 1U : 0U;
  }
  std::string text;
  for (const auto& [name, digest] : sorted) {
    text += name + " " + digest + "\n";
  }
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  if (EVP_Digest(text.data(), text.size(), bytes, &length, EVP_sha256(), nullptr) != 1) {
    return "OpenSSL cannot compute SHA-256";
  }
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[bytes[i] >> 4U];
    hex += kDigits[bytes[i] & 15U];
  }
  return "sha256 " + hex + " over " + std::to_string(sorted.size()) + " parameters" +
         (empty > 0 ? ", " + std::to_string(empty) + " of them unreadable" : "");
}

std::vector<EngineLine> OrderRun::checksums() {
  identify();
  for (Member& member : group_.members()) {
    if (member.failure && !member.identity->features.hasChecker) {
      member.failure = Status(
          Code::kFailedPrecondition,
          "release " + member.identity->release + " has no checksum route; it came with 0.32");
    }
  }
  readSessions();
  for (std::size_t i = 0; i < group_.members().size(); ++i) {
    if (sessionOpen_[i]) {
      group_.members()[i].failure =
          Status(Code::kFailedPrecondition, "a session is open; close-session first");
    }
  }
  group_.askAll(CallKind::kChecksums, limits_.request);
  return lines([this](std::size_t i) -> std::string {
    constexpr std::size_t kMostValues = 4'000'000;
    const Result<JsonNode> body = parseStrictJson(group_.members()[i].last.text, kMostValues);
    const JsonNode* sums = body ? body->find("checksums") : nullptr;
    return sums == nullptr ? "its checksums cannot be read" : digestOfAll(*sums);
  });
}

Status fillEngines(Config& config, const std::string& only) {
  if (config.engines.list.empty() && !config.engines.file.empty()) {
    auto list = config::loadEngines(config.engines.file);
    if (!list) {
      return list.status();
    }
    config.engines.list = std::move(*list);
  }
  const auto& list = config.engines.list;
  const bool found = std::any_of(list.begin(), list.end(), [&only](const EngineConfig& engine) {
    return engine.name == only;
  });
  if (!only.empty() && !found) {
    std::string names;
    for (const EngineConfig& engine : list) {
      names += (names.empty() ? "" : ", ") + engine.name;
    }
    return {Code::kInvalidArgument,
            "--only " + only + ": no configured engine is called so; there are " + names};
  }
  return {};
}

}  // namespace

std::vector<std::string> versionObjections(const std::vector<std::string>& versions) {
  std::map<std::string, std::size_t> counts;
  for (const std::string& version : versions) {
    counts[version] += version.empty() ? 0U : 1U;
  }
  std::size_t most = 0;
  std::size_t holders = 0;  // Versions that so many engines report.
  std::string common;
  for (const auto& [version, count] : counts) {
    if (count > most) {
      most = count;
      holders = 0;
      common = version;
    }
    holders += count == most && count > 0 ? 1U : 0U;
  }
  std::vector<std::string> objections;
  for (const std::string& version : versions) {
    if (version.empty()) {
      objections.emplace_back("its version is not known");
    } else if (holders > 1) {
      objections.emplace_back("its version is " + version +
                              ", and the engines do not agree on one");
    } else if (version != common) {
      objections.emplace_back("its version is " + version + ", the others' is " + common);
    } else {
      objections.emplace_back();
    }
  }
  return objections;
}

Result<std::vector<EngineLine>> orderEngines(Config config,
                                             EngineOrder order,
                                             const std::string& only,
                                             bool force) {
  const Status filled = fillEngines(config, only);
  if (!filled) {
    return filled;
  }
  if (!only.empty() && order != EngineOrder::kResume) {
    // Resume compares it with the others.
    std::erase_if(config.engines.list,
                  [&only](const EngineConfig& engine) { return engine.name != only; });
  }
  const Result<std::unique_ptr<EngineGroup>> group = EngineGroup::create(config);
  if (!group) {
    return group.status();
  }
  OrderRun run(**group, config.timeouts, only);
  switch (order) {
    case EngineOrder::kCloseSession:
      return run.closeSession();
    case EngineOrder::kPause:
      return run.pause();
    case EngineOrder::kResume:
      return run.resume(force);
    case EngineOrder::kVersion:
      return run.version();
    case EngineOrder::kChecksums:
      break;
  }
  return run.checksums();
}

}  // namespace pushrod::tools
