// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pushrod/data_plane.h>
#include <pushrod/deadline.h>
#include <pushrod/log_sink.h>
#include <pushrod/result.h>

namespace pushrod {

/// The whole configuration, one member per YAML key (docs/configuration.md), with its defaults.
/// Plain values; copy freely.
struct RanksConfig {
  std::string store = "auto";
  std::string interface;
};

struct EngineExpect {
  std::string model;
  std::optional<int> worldSize;
  std::optional<int> pipelineStages;
};

struct EngineConfig {
  std::string url;
  std::string name;  ///< filled with the address when not given
  std::optional<TransportKind> transport;
  EngineExpect expect;
  std::string dpGroup;
};

struct TlsConfig {
  std::string ca, cert, key;
  bool verify = true;
};

enum class UnknownProfile : std::uint8_t { kNewest, kRefuse };
enum class OnLoss : std::uint8_t { kFail, kQuarantine };
enum class Wake : std::uint8_t { kFalse, kWeights, kAll };

/// Count (percent false) or share of the listed engines.
struct MinHealthy {
  int value = 1;
  bool percent = false;
};

struct EnginesConfig {
  std::vector<EngineConfig> list;
  std::string file;
  std::string profile = "auto";
  UnknownProfile unknownProfile = UnknownProfile::kNewest;
  std::string tokenEnv;
  TlsConfig tls;
  std::string proxy;
  OnLoss onLoss = OnLoss::kFail;
  MinHealthy minHealthy;
  Wake wake = Wake::kFalse;
};

enum class Packed : std::uint8_t { kAuto, kTrue, kFalse };
enum class Group : std::uint8_t { kShared, kPerEngine };
enum class Rendezvous : std::uint8_t { kAuto, kUniqueId, kTcpStore };

struct TransportConfig {
  TransportKind kind = TransportKind::kNccl;
  std::uint64_t buffer = std::uint64_t{1} << 30;
  int buffers = 2;
  bool keepBuffers = true;
  Packed packed = Packed::kAuto;
  bool owners = false;
  bool loadPlan = false;
  bool digest = true;
  Group group = Group::kShared;
  std::string bind = "auto";
  int port = 0;
  Rendezvous rendezvous = Rendezvous::kAuto;
  std::string library;
};

enum class PauseMode : std::uint8_t { kKeep, kWait, kAbort };
enum class Stop : std::uint8_t { kChunk, kPass };
enum class Verify : std::uint8_t { kVersion, kChecksum, kNone };
enum class DtypeMismatch : std::uint8_t { kCast, kRefuse };
enum class VersionMarker : std::uint8_t { kAuto, kAlways, kNever };
enum class CheckReplicas : std::uint8_t { kOff, kDigest };

struct DtypesConfig {
  std::string defaultDtype;                      ///< empty: what the source says
  std::map<std::string, std::string> overrides;  ///< name pattern (* and ?) -> dtype
};

struct PushConfig {
  PauseMode pause = PauseMode::kKeep;
  bool clearCache = true;
  DtypesConfig dtypes;
  Stop stop = Stop::kChunk;
  bool flush = true;
  bool flushExternal = false;
  Verify verify = Verify::kVersion;
  int verifyEvery = 1;
  bool resend = true;
  DtypeMismatch dtypeMismatch = DtypeMismatch::kCast;
  VersionMarker versionMarker = VersionMarker::kAuto;
  int wave = 0;
  bool partial = false;
  CheckReplicas checkReplicas = CheckReplicas::kOff;
};

struct TimeoutsConfig {
  Duration push = std::chrono::hours(2);
  Duration connect = std::chrono::seconds(60);
  Duration startup = std::chrono::minutes(10);
  Duration init = std::chrono::seconds(600);
  Duration request = std::chrono::seconds(1800);
  Duration pause = std::chrono::seconds(300);
  Duration resume = std::chrono::seconds(300);
  Duration progress = std::chrono::seconds(300);
  Duration drain = std::chrono::seconds(60);
  Duration gather = std::chrono::seconds(480);
  Duration agreement = std::chrono::seconds(60);
  Duration shutdown = std::chrono::seconds(20);
};

enum class MetricsRanks : std::uint8_t { kFirst, kAll };

struct MetricsConfig {
  std::string listen = "127.0.0.1:9464";
  MetricsRanks ranks = MetricsRanks::kFirst;
  Duration linger = Duration::zero();
};

enum class LogFormat : std::uint8_t { kText, kJson };
enum class LogRanks : std::uint8_t { kAll, kFirst };

struct LogConfig {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
  LogRanks ranks = LogRanks::kAll;
};

struct Config {
  std::string job = "pushrod";
  RanksConfig ranks;
  EnginesConfig engines;
  TransportConfig transport;
  PushConfig push;
  TimeoutsConfig timeouts;
  MetricsConfig metrics;
  LogConfig log;

  /// Reads and checks a YAML file. On failure the message holds every fault, one per line, each as
  /// FILE:LINE:COLUMN: text. Code invalidArgument.
  static Result<Config> load(const std::string& path);
  /// As load, from text; `name` stands for the file in messages.
  static Result<Config> parse(const std::string& text, const std::string& name);
  /// The effective configuration as YAML that parses back to the same values.
  [[nodiscard]] std::string effective() const;
};

}  // namespace pushrod
