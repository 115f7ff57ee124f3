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

// The whole configuration, one member per YAML key, with its defaults; docs/configuration.md tells
// what each key means. Plain values: copy freely, share between threads as any value. Sizes are
// bytes, durations milliseconds; an empty text means the key's own "not given".

/// Where and how the trainer's ranks meet.
struct RanksConfig {
  std::string store = "auto";  ///< auto | file:///PATH | tcp://HOST:PORT | redis://HOST:PORT
  std::string interface;       ///< address or name that Gloo binds; empty: the one to the store
};

/// What an engine must be; empty members are not compared.
struct EngineExpect {
  std::string model;
  std::optional<int> worldSize;
  std::optional<int> pipelineStages;
};

/// One engine of the list.
struct EngineConfig {
  std::string url;   ///< http or https, with host name, IPv4 or [IPv6], port and path prefix
  std::string name;  ///< filled with the address when not given
  std::optional<TransportKind> transport;  ///< empty: transport.kind
  EngineExpect expect;
  std::string dpGroup;  ///< engines of one external data-parallel group have the same text
};

/// For https:// engines.
struct TlsConfig {
  std::string ca, cert, key;  ///< paths of PEM files
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
  std::string file;              ///< instead of list: re-read by rank 0 before each push
  std::string profile = "auto";  ///< vLLM dialect: auto, or a release such as "0.27"
  UnknownProfile unknownProfile = UnknownProfile::kNewest;
  std::string tokenEnv;  ///< name of the variable that holds a bearer token, never the token
  TlsConfig tls;
  std::string proxy;  ///< host:port; the environment's proxies are ignored
  OnLoss onLoss = OnLoss::kFail;
  MinHealthy minHealthy;
  Wake wake = Wake::kFalse;
};

enum class Packed : std::uint8_t { kAuto, kTrue, kFalse };
enum class Group : std::uint8_t { kShared, kPerEngine };
enum class Rendezvous : std::uint8_t { kAuto, kUniqueId, kTcpStore };

struct TransportConfig {
  TransportKind kind = TransportKind::kNccl;
  std::uint64_t buffer = std::uint64_t{1} << 30;  ///< bytes of one packed buffer
  int buffers = 2;                                ///< packed buffers in flight
  bool keepBuffers = true;                        ///< false: freed after each push
  Packed packed = Packed::kAuto;
  bool owners = false;
  bool loadPlan = false;
  bool digest = true;  ///< tcp: XXH3-64 of each chunk
  Group group = Group::kShared;
  std::string bind = "auto";  ///< address that the sender listens on and announces
  int port = 0;               ///< 0: the system chooses
  Rendezvous rendezvous = Rendezvous::kAuto;
  std::string library;  ///< path of libnccl.so.2; empty: the one already loaded
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
  int verifyEvery = 1;  ///< checksum: every so many pushes
  bool resend = true;
  DtypeMismatch dtypeMismatch = DtypeMismatch::kCast;
  VersionMarker versionMarker = VersionMarker::kAuto;
  int wave = 0;  ///< engines resumed at a time; 0: all
  bool partial = false;
  CheckReplicas checkReplicas = CheckReplicas::kOff;
};

/// Limits of a push and of its parts; docs/configuration.md tells what each covers.
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
  std::string listen = "127.0.0.1:9464";      ///< empty: off; port 0: the system chooses
  MetricsRanks ranks = MetricsRanks::kFirst;  ///< kAll: port + local rank
  Duration linger = Duration::zero();         ///< goes on serving so long after the last push
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
  /// Remarks on a sound file, each as FILE:LINE:COLUMN: text. Rank 0 logs them when it makes its
  /// coordinator. No part of effective().
  std::vector<std::string> warnings;

  /// Reads and checks a YAML file. On failure the message holds every fault, one per line, each as
  /// FILE:LINE:COLUMN: text. Code invalidArgument.
  static Result<Config> load(const std::string& path);
  /// As load, from text; `name` stands for the file in messages.
  static Result<Config> parse(const std::string& text, const std::string& name);
  /// The effective configuration as YAML that parses back to the same values.
  [[nodiscard]] std::string effective() const;
};

}  // namespace pushrod
