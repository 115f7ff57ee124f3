// SPDX-License-Identifier: Apache-2.0
// The keys of ranks, engines, timeouts, metrics and log.
#include <algorithm>
#include <charconv>

#include "config/key_table.h"

namespace pushrod::config {

namespace {

using C = Config;

constexpr std::size_t kLongestJob = 64;
constexpr Duration kShortestLimit{1};
constexpr Duration kLongestLimit = std::chrono::hours(168);

bool isAlnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// The job names shared memory segments and store keys, so it must be safe there.
Wrong checkJob(std::string& job) {
  const bool sound = !job.empty() && job.size() <= kLongestJob && isAlnum(job[0]) &&
                     std::all_of(job.begin(), job.end(), [](char c) {
                       return isAlnum(c) || c == '.' || c == '_' || c == '-';
                     });
  return sound ? Wrong()
               : "must have 1 to " + std::to_string(kLongestJob) +
                     " letters, digits, \".\", \"_\" and \"-\", beginning with a letter or digit";
}

Wrong checkInterface(std::string& interface) {
  const bool sound = std::all_of(
      interface.begin(), interface.end(), [](char c) { return c > ' ' && c < 0x7F && c != '/'; });
  return sound && interface.size() <= 64 ? Wrong() : "is no address and no interface's name";
}

/// "auto", "main" or two to three numbers with dots.
Wrong checkProfile(std::string& profile) {
  if (profile == "auto" || profile == "main") {
    return std::nullopt;
  }
  constexpr const char* kRefusal =
      "is no profile; write auto, main, or a release such as \"0.27\" or \"0.28.1\"";
  std::size_t parts = 0;
  std::string_view rest = profile;
  for (bool more = true; more; ++parts) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    const bool digits =
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (part.empty() || part.size() > 4 || !digits) {
      return kRefusal;
    }
    more = dot < rest.size();
    rest.remove_prefix(more ? dot + 1 : dot);
  }
  return parts == 2 || parts == 3 ? Wrong() : kRefusal;
}

Wrong checkVariable(std::string& name) {
  return name.empty() || isVariableName(name) ? Wrong()
                                              : "is not the name of an environment variable "
                                                "(letters, digits and _); never write the "
                                                "token itself here";
}

/// Says which set of keys the file was written for; held nowhere, since there is only one.
Key<C> versionKey() {
  return {.path = "config_version",
          .values = "`1`",
          .meaning = "The set of keys that the file is written for; any other value is refused.",
          .read =
              [](C& /*c*/, const TreeNode& node, Reader& reader, const std::string& path) {
                const auto version = readInteger(reader, path, node, 1, 1);
                return version.has_value();
              },
          .write = [](const C& /*c*/, std::size_t) -> std::string { return "1"; }};
}

Key<C> engineListKey() {
  return {.path = "engines.list",
          .values = "list of engines, see below",
          .meaning = "The servers to push to. Either this or `engines.file` is needed.",
          .ranks = Ranks::kMayDiffer,
          .read =
              [](C& c, const TreeNode& node, Reader& reader, const std::string& path) {
                return readEngineList(c.engines.list, node, reader, path);
              },
          .write = [](const C& c,
                      std::size_t indent) { return writeEngineList(c.engines.list, indent); }};
}

std::optional<MinHealthy> parseMinHealthy(const std::string& text) {
  const bool percent = text.ends_with('%');
  const auto number =
      parseInteger(std::string_view(text).substr(0, text.size() - (percent ? 1 : 0)));
  if (!number || *number < 1 || *number > (percent ? 100 : 65536)) {
    return std::nullopt;
  }
  return MinHealthy{.value = static_cast<int>(*number), .percent = percent};
}

Key<C> minHealthyKey() {
  return {.path = "engines.min_healthy",
          .values = "count from 1 to 65536, or share from \"1%\" to \"100%\"",
          .meaning = "With `on_loss: quarantine`: fewer healthy engines fail the push.",
          .read =
              [](C& c, const TreeNode& node, Reader& reader, const std::string& path) {
                const auto text = readText(reader, path, node);
                if (!text) {
                  return false;
                }
                const auto value = parseMinHealthy(text->value);
                if (!value) {
                  reader.faults.add(node.where,
                                    path,
                                    text->shown +
                                        " is no count from 1 to 65536 and no share from \"1%\" to "
                                        "\"100%\"");
                  return false;
                }
                c.engines.minHealthy = *value;
                return true;
              },
          .write = [](const C& c, std::size_t) -> std::string {
            const MinHealthy& m = c.engines.minHealthy;
            const std::string number = std::to_string(m.value);
            return m.percent ? "\"" + number + "%\"" : number;
          }};
}

Key<C> tokenKey() {
  Key<C> key = textKey<C>(
      {"engines.token_env",
       "Variable that holds the bearer token sent to engines; empty: no token.",
       Ranks::kMayDiffer},
      "name of an environment variable",
      checkVariable,
      [](auto& c) -> auto& { return c.engines.tokenEnv; });
  // What stands there by mistake is most likely the token, so messages do not repeat it.
  key.read = [](C& c, const TreeNode& node, Reader& reader, const std::string& path) {
    auto text = readText(reader, path, node);
    if (!text) {
      return false;
    }
    if (const Wrong wrong = checkVariable(text->value)) {
      reader.faults.add(node.where, path, "the value " + *wrong);
      return false;
    }
    c.engines.tokenEnv = std::move(text->value);
    return true;
  };
  return key;
}

template <typename Member>
Key<C> tlsFileKey(std::string name, std::string meaning, Member at) {
  return textKey<C>({"engines.tls." + std::move(name), std::move(meaning), Ranks::kMayDiffer},
                    "path",
                    anyText,
                    at);
}

template <typename Member>
Key<C> limitKey(std::string name, std::string meaning, Member at) {
  return durationKey<C>(
      {"timeouts." + std::move(name), std::move(meaning)}, kShortestLimit, kLongestLimit, at);
}

}  // namespace

std::vector<Key<Config>> rankKeys() {
  return {
      versionKey(),
      textKey<C>(
          {"job", "Names segments, stores and log lines."},
          "letters, digits, `.`, `_`, `-`",
          checkJob,
          [](auto& c) -> auto& { return c.job; }),
      textKey<C>(
          {"ranks.store",
           "Where ranks meet. `auto`: `tcp://$MASTER_ADDR:($MASTER_PORT+1)`, served by the "
           "lowest rank that owns that address, or a private file store with `--ranks`."},
          "`auto`, `file:///PATH`, `tcp://HOST:PORT`, `redis://HOST:PORT`",
          [](std::string& store) { return checkStore(store); },
          [](auto& c) -> auto& { return c.ranks.store; }),
      textKey<C>(
          {"ranks.interface",
           "Address or interface that the ranks' connections bind; empty: the one that "
           "routes to the store.",
           Ranks::kMayDiffer},
          "address or interface",
          checkInterface,
          [](auto& c) -> auto& { return c.ranks.interface; }),
  };
}

std::vector<Key<Config>> engineSectionKeys() {
  return {
      engineListKey(),
      textKey<C>(
          {"engines.file",
           "Instead of `list`: a YAML or JSON file holding such a list, read again by rank 0 "
           "before each push.",
           Ranks::kMayDiffer},
          "path",
          anyText,
          [](auto& c) -> auto& { return c.engines.file; }),
      textKey<C>(
          {"engines.profile",
           "The engines' dialect. A release counts as the newest known one at or below it."},
          "`auto`, `main`, or a release such as `\"0.27\"`",
          checkProfile,
          [](auto& c) -> auto& { return c.engines.profile; }),
      choiceKey<C, UnknownProfile>(
          {"engines.unknown_profile",
           "A server newer than this build knows is treated as the newest (with a warning) or "
           "refused."},
          {{UnknownProfile::kNewest, "newest"}, {UnknownProfile::kRefuse, "refuse"}},
          [](auto& c) -> auto& { return c.engines.unknownProfile; }),
      tokenKey(),
      tlsFileKey(
          "ca",
          "Certificates that `https://` engines are checked against; empty: the system's.",
          [](auto& c) -> auto& { return c.engines.tls.ca; }),
      tlsFileKey(
          "cert", "Our certificate, for engines that ask for one.", [](auto& c) -> auto& {
            return c.engines.tls.cert;
          }),
      tlsFileKey(
          "key", "Its private key.", [](auto& c) -> auto& { return c.engines.tls.key; }),
      switchKey<C>(
          {"engines.tls.verify", "`false` takes any certificate: unsafe."},
          [](auto& c) -> auto& { return c.engines.tls.verify; }),
      textKey<C>(
          {"engines.proxy",
           "HTTP proxy to engines. The environment's proxy variables are ignored."},
          "`http://HOST:PORT`",
          normaliseProxy,
          [](auto& c) -> auto& { return c.engines.proxy; }),
      choiceKey<C, OnLoss>(
          {"engines.on_loss",
           "A lost engine fails the push, or is left out while `min_healthy` holds."},
          {{OnLoss::kFail, "fail"}, {OnLoss::kQuarantine, "quarantine"}},
          [](auto& c) -> auto& { return c.engines.onLoss; }),
      minHealthyKey(),
      choiceKey<C, Wake>(
          {"engines.wake",
           "Sleeping engines: refuse, or wake their weights or all once they are paused. With "
           "`weights` they stay paused after the push, for whoever wakes their cache."},
          {{Wake::kFalse, "false"}, {Wake::kWeights, "weights"}, {Wake::kAll, "all"}},
          [](auto& c) -> auto& { return c.engines.wake; }),
  };
}

std::vector<Key<Config>> timeoutKeys() {
  return {
      limitKey(
          "push", "One whole push.", [](auto& c) -> auto& { return c.timeouts.push; }),
      limitKey(
          "connect", "Ranks meet, engines answer at all.", [](auto& c) -> auto& {
            return c.timeouts.connect;
          }),
      limitKey(
          "startup",
          "An engine that this coordinator never saw may answer 503 or refuse connections for "
          "so long; later, and in recovery, `connect` holds.",
          [](auto& c) -> auto& { return c.timeouts.startup; }),
      limitKey(
          "init", "The call `/init_weight_transfer_engine`.", [](auto& c) -> auto& {
            return c.timeouts.init;
          }),
      limitKey(
          "request", "The calls start, update, finish, version and flush.", [](auto& c) -> auto& {
            return c.timeouts.request;
          }),
      limitKey(
          "pause", "The call `/pause`.", [](auto& c) -> auto& { return c.timeouts.pause; }),
      limitKey(
          "resume", "The call `/resume`.", [](auto& c) -> auto& { return c.timeouts.resume; }),
      limitKey(
          "progress",
          "No byte moved although the receiver owes reads: failed.",
          [](auto& c) -> auto& { return c.timeouts.progress; }),
      limitKey(
          "drain", "An engine answered while bytes remain, or the reverse.", [](auto& c) -> auto& {
            return c.timeouts.drain;
          }),
      limitKey(
          "gather",
          "One call of the weight source; keep it below the trainer's own watchdog.",
          [](auto& c) -> auto& { return c.timeouts.gather; }),
      limitKey(
          "agreement",
          "One vote, counted from the last rank's possible arrival.",
          [](auto& c) -> auto& { return c.timeouts.agreement; }),
      limitKey(
          "shutdown",
          "Closing down; keep it well under the 30 s after which launchers kill.",
          [](auto& c) -> auto& { return c.timeouts.shutdown; }),
  };
}

std::vector<Key<Config>> outputKeys() {
  return {
      textKey<C>(
          {"metrics.listen",
           "Address of `/metrics`, `/healthz`, `/status` and `/`; empty: off; port 0: the "
           "system chooses and it is printed.",
           Ranks::kMayDiffer},
          "`HOST:PORT` or `\"\"`",
          [](std::string& listen) { return checkListen(listen); },
          [](auto& c) -> auto& { return c.metrics.listen; }),
      choiceKey<C, MetricsRanks>(
          {"metrics.ranks",
           "Which ranks serve: rank 0, or all (port + local rank).",
           Ranks::kMayDiffer},
          {{MetricsRanks::kFirst, "first"}, {MetricsRanks::kAll, "all"}},
          [](auto& c) -> auto& { return c.metrics.ranks; }),
      durationKey<C>(
          {"metrics.linger",
           "Go on serving so long after close, so that a scraper sees the end of a short "
           "run.",
           Ranks::kMayDiffer},
          Duration::zero(),
          kLongestLimit,
          [](auto& c) -> auto& { return c.metrics.linger; }),
      choiceKey<C, LogLevel>(
          {"log.level", "Texts below it are dropped.", Ranks::kMayDiffer},
          {{LogLevel::kDebug, "debug"},
           {LogLevel::kInfo, "info"},
           {LogLevel::kWarning, "warning"},
           {LogLevel::kError, "error"}},
          [](auto& c) -> auto& { return c.log.level; }),
      choiceKey<C, LogFormat>(
          {"log.format", "How lines look.", Ranks::kMayDiffer},
          {{LogFormat::kText, "text"}, {LogFormat::kJson, "json"}},
          [](auto& c) -> auto& { return c.log.format; }),
      choiceKey<C, LogRanks>(
          {"log.ranks",
           "Who logs below `warning`; each line carries job and rank.",
           Ranks::kMayDiffer},
          {{LogRanks::kAll, "all"}, {LogRanks::kFirst, "first"}},
          [](auto& c) -> auto& { return c.log.ranks; }),
  };
}

}  // namespace pushrod::config
