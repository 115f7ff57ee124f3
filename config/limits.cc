// SPDX-License-Identifier: Apache-2.0
#include "config/limits.h"

#include <algorithm>
#include <array>
#include <optional>

#include "config/scalar.h"

namespace pushrod::config {

namespace {

struct Limit {
  const char* path;
  Duration TimeoutsConfig::*member;
};

/// Every limit that runs inside a push.
constexpr std::array<Limit, 10> kInsidePush = {
    {{"timeouts.connect", &TimeoutsConfig::connect},
     {"timeouts.startup", &TimeoutsConfig::startup},
     {"timeouts.init", &TimeoutsConfig::init},
     {"timeouts.request", &TimeoutsConfig::request},
     {"timeouts.pause", &TimeoutsConfig::pause},
     {"timeouts.resume", &TimeoutsConfig::resume},
     {"timeouts.progress", &TimeoutsConfig::progress},
     {"timeouts.drain", &TimeoutsConfig::drain},
     {"timeouts.gather", &TimeoutsConfig::gather},
     {"timeouts.agreement", &TimeoutsConfig::agreement}}};

/// The trainer's usual watchdog (Megatron's process groups) and the launchers' grace before a kill.
constexpr Duration kTrainerWatchdog = std::chrono::minutes(10);
constexpr Duration kLauncherGrace = std::chrono::seconds(30);

class Checker {
 public:
  Checker(Config& config, const TreeNode& root, Reader& reader, std::vector<Remark>& remarks)
      : config_(config), root_(root), reader_(reader), remarks_(remarks) {}

  void run() {
    checkEngines();
    checkTls();
    checkPush();
    checkLimits();
  }

 private:
  [[nodiscard]] std::optional<Position> written(const std::string& path) const {
    const auto place = reader_.written.find(path);
    return place == reader_.written.end() ? std::nullopt : std::optional<Position>(place->second);
  }

  /// Whether the key stands in the text at all, sound or not.
  [[nodiscard]] bool present(const std::string& section, const std::string& key) const {
    const TreeNode* found = child(root_, section);
    return found != nullptr && child(*found, key) != nullptr;
  }

  static const TreeNode* child(const TreeNode& map, const std::string& key) {
    const auto entry = std::find_if(
        map.entries.begin(), map.entries.end(), [&](const auto& e) { return e.first.text == key; });
    return entry == map.entries.end() ? nullptr : &entry->second;
  }

  void remark(const std::string& path, const std::string& text) {
    if (const auto where = written(path)) {
      remarks_.push_back({*where, path + ": " + text});
    }
  }

  void checkEngines() {
    const EnginesConfig& engines = config_.engines;
    const TreeNode* section = child(root_, "engines");
    const Position place = section != nullptr ? section->where : Position{};
    const bool listFault = present("engines", "list") && !written("engines.list");
    const bool fileFault = present("engines", "file") && !written("engines.file");
    if (listFault || fileFault || (section != nullptr && section->kind != TreeNode::Kind::kMap)) {
      return;
    }
    if (!engines.list.empty() && !engines.file.empty()) {
      reader_.faults.add(*written("engines.file"),
                         "engines.file",
                         "stands beside engines.list; keep one of the two");
    } else if (engines.list.empty() && engines.file.empty()) {
      reader_.faults.add(written("engines.list").value_or(place),
                         "engines.list",
                         "there is no engine to push to; list at least one, or name engines.file");
    }
    const bool countTooHigh =
        !engines.minHealthy.percent && !engines.list.empty() &&
        static_cast<std::size_t>(engines.minHealthy.value) > engines.list.size();
    if (countTooHigh && written("engines.min_healthy")) {
      reader_.faults.add(*written("engines.min_healthy"),
                         "engines.min_healthy",
                         std::to_string(engines.minHealthy.value) + " is more than the " +
                             std::to_string(engines.list.size()) + " engines of engines.list");
    }
    if (engines.onLoss != OnLoss::kQuarantine) {
      remark("engines.min_healthy", "has no effect without engines.on_loss: quarantine");
    }
  }

  void checkTls() {
    const EnginesConfig& engines = config_.engines;
    if (engines.tls.cert.empty() != engines.tls.key.empty()) {
      const std::string given = engines.tls.cert.empty() ? "engines.tls.key" : "engines.tls.cert";
      const std::string other = engines.tls.cert.empty() ? "cert" : "key";
      if (written(given) && !tlsFault(other)) {
        reader_.faults.add(*written(given), given, "needs engines.tls." + other + " beside it");
      }
    }
    const auto isTls = [](const EngineConfig& e) { return e.url.starts_with("https://"); };
    const bool anyTls = std::any_of(engines.list.begin(), engines.list.end(), isTls);
    const bool allTls = std::all_of(engines.list.begin(), engines.list.end(), isTls);
    if (!engines.list.empty() && !anyTls) {
      for (const char* key : {"engines.tls.ca", "engines.tls.cert", "engines.tls.verify"}) {
        remark(key, "has no effect: no engine's url begins with https://");
      }
    }
    if (!engines.tokenEnv.empty() && !allTls) {
      remark("engines.token_env", "the token is sent unencrypted to engines with an http:// url");
    }
    if (!engines.tls.verify && anyTls) {
      remark("engines.tls.verify", "false takes any server's certificate: unsafe");
    }
  }

  /// Whether the key of engines.tls, a section that is there, stands in it with a fault.
  [[nodiscard]] bool tlsFault(const std::string& key) const {
    return child(*child(*child(root_, "engines"), "tls"), key) != nullptr &&
           !written("engines.tls." + key);
  }

  void checkPush() {
    const PushConfig& push = config_.push;
    if (push.verify == Verify::kNone) {
      remark("push.verify", "none proves nothing about what engines serve: unsafe");
    }
    if (push.verify != Verify::kChecksum) {
      remark("push.verify_every", "has no effect without push.verify: checksum");
    }
    if (!push.flush) {
      remark("push.flush", "false leaves cached blocks of the old weights in use");
    }
  }

  void checkLimits() {
    TimeoutsConfig& limits = config_.timeouts;
    const auto push = written("timeouts.push");
    const bool pushFault = present("timeouts", "push") && !push;
    for (const Limit& limit : kInsidePush) {
      Duration& value = limits.*limit.member;
      if (value <= limits.push || pushFault) {
        continue;
      }
      const std::string text = formatDuration(value) + " is longer than timeouts.push (" +
                               formatDuration(limits.push) + "), which would end it first";
      const auto place = written(limit.path);
      if (push && place) {
        reader_.faults.add(*place, limit.path, text + "; lower it or raise timeouts.push");
        continue;
      }
      remark(limit.path, text + "; it is taken as " + formatDuration(limits.push));
      value = limits.push;
    }
    remarkOrder("timeouts.connect", limits.connect, "timeouts.startup", limits.startup);
    remarkOrder("timeouts.drain", limits.drain, "timeouts.request", limits.request);
    remarkOrder("timeouts.progress", limits.progress, "timeouts.request", limits.request);
    if (limits.gather >= kTrainerWatchdog) {
      remark("timeouts.gather",
             formatDuration(limits.gather) +
                 " is not below the 10m after which a trainer's own watchdog usually ends the job");
    }
    if (limits.shutdown >= kLauncherGrace) {
      remark("timeouts.shutdown",
             formatDuration(limits.shutdown) +
                 " is not below the 30s after which launchers kill a process");
    }
  }

  /// Remarks that the first limit should end before the second, when either is written.
  void remarkOrder(const std::string& inner,
                   Duration innerValue,
                   const std::string& outer,
                   Duration outerValue) {
    if (innerValue <= outerValue) {
      return;
    }
    const std::string text = inner + " (" + formatDuration(innerValue) + ") is longer than " +
                             outer + " (" + formatDuration(outerValue) + "), which ends first";
    if (written(inner)) {
      remark(inner, text);
    } else {
      remark(outer, text);
    }
  }

  Config& config_;
  const TreeNode& root_;
  Reader& reader_;
  std::vector<Remark>& remarks_;
};

}  // namespace

void checkTogether(Config& config,
                   const TreeNode& root,
                   Reader& reader,
                   std::vector<Remark>& remarks) {
  Checker(config, root, reader, remarks).run();
}

}  // namespace pushrod::config
