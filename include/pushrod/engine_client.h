// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <pushrod/deadline.h>
#include <pushrod/result.h>

namespace pushrod {

/// What can be asked of an engine. Composite ones (identify, measureLag) are several harmless HTTP
/// requests inside the adapter and yield one reply.
enum class CallKind : std::uint8_t {
  kIdentify,     ///< reads version, routes, world size, model, backend, sleep state
  kMeasureLag,   ///< P16 (b): alternating harmless reads until two rounds agree
  kReadPaused,   ///< GET /is_paused -> Reply::flag
  kReadSession,  ///< P16 (a): the workers' session flag -> Reply::flag (true: open)
  kReadVersion,  ///< GET /weight_info -> Reply::text, to the letter
  kPause,
  kResume,
  kSetVersion,  ///< POST /update_weight_version with Call::version
  kShutdown,    ///< POST /shutdown_weight_transfer_engine
  kInit,        ///< POST /init_weight_transfer_engine with Call::body as init_info
  kStart,
  kUpdate,     ///< POST /update_weights with Call::body as update_info
  kFinish,     ///< POST /finish_weight_update, with Call::version when hasVersion
  kFlush,      ///< prefix and other caches
  kChecksums,  ///< POST /weight_checker -> Reply::text, {"checksums": {parameter: SHA-256}}
  kWake,       ///< POST /wake_up with Call::tag
};

inline constexpr std::size_t kCallKindCount = 16;

/// The route's last path element, e.g. "finish_weight_update"; "identify" and "measure_lag" for the
/// composite ones.
[[nodiscard]] std::string_view callName(CallKind kind);

/// What a release can do, as data (the contract's profiles). nextCall reads it.
struct EngineFeatures {
  std::string profile;             ///< e.g. "0.32"
  bool hasVersion = true;          ///< /weight_info and /update_weight_version (0.27+)
  bool failedUpdateCloses = true;  ///< a failed update ends the session (0.23+)
  bool hasShutdown = false;        ///< /shutdown_weight_transfer_engine (0.32+)
  bool prefixResetAnswers = true;  ///< /reset_prefix_cache says success (0.26+)
  bool updateIsTyped = false;      ///< wrong bodies are 400 (0.32+)
  bool ncclPackedInInit = true;    ///< 0.28+
  bool ipcPackedInInit = true;     ///< 0.27+
  bool hasUniqueId = false;        ///< 0.30+
  bool hasChecker = false;         ///< 0.32+
  bool hasDraft = false;           ///< 0.26+
  bool reusesMetadata = false;     ///< 0.33+
  bool wakeAnswers = false;        ///< /wake_up says what sleeps still (0.32+)
  bool operator==(const EngineFeatures&) const = default;
};

/// What an engine said of itself (P5).
struct EngineIdentity {
  std::string release;  ///< /version's text
  EngineFeatures features;
  int worldSize = 1;         ///< workers behind this URL, data parallelism included
  std::string model;         ///< first served model id; empty: not told
  std::string backend;       ///< weight transfer backend; empty: not told
  std::string dtype;         ///< model dtype without "torch."; empty: not told
  std::string quantization;  ///< how weights are quantised; empty: not, or not told
  int pipelineStages = 0;    ///< 0: not told
  int dataParallel = 0;      ///< 0: not told
  std::string executor;      ///< "mp", "ray", "uni"; empty: not told
  bool asleep = false;
  bool operator==(const EngineIdentity&) const = default;
};

struct Call {
  CallKind kind = CallKind::kIdentify;
  /// JSON text for kInit and kUpdate; one text shared by all engines where it is equal.
  std::shared_ptr<const std::string> body;
  std::string version;      ///< kSetVersion, kFinish
  bool hasVersion = false;  ///< kFinish: send the version
  std::string tag = {};     ///< kWake: what to wake, "weights" or "kv_cache"
  bool draft = false;       ///< kStart: a session of the draft model (/start_draft_weight_update)
};

/// The one classified answer to a Call.
struct Reply {
  CallKind kind = CallKind::kIdentify;
  /// ok exactly when the engine did, or answered, what was asked. status.outcome() says whether a
  /// failed call may have acted; the message holds the engine's own text.
  Status status;
  int httpStatus = 0;        ///< 0: no answer
  bool lost = false;         ///< the engine cannot be used until it is restarted (P16)
  int lag = 0;               ///< largest reply lag of its workers known after this call
  std::optional<bool> flag;  ///< kReadPaused, kReadSession
  std::string text;          ///< kReadVersion, kChecksums
  /// kChecksums: SHA-256 in hex by the engine's parameter, each "dp0:pp0:pcp0:tp0:NAME".
  std::shared_ptr<const std::map<std::string, std::string>> checksums;
  std::shared_ptr<const EngineIdentity> identity;  ///< kIdentify
};

/// One engine, behind whatever protocol it speaks. All functions on the control thread. At most one
/// call is outstanding; its `done` fires exactly once, never inline, at the latest shortly after
/// the deadline or cancel(). Destroying the client drops an outstanding `done`.
class EngineClient {
 public:
  using Done = std::function<void(Reply)>;

  EngineClient() = default;
  EngineClient(const EngineClient&) = delete;
  EngineClient& operator=(const EngineClient&) = delete;
  virtual ~EngineClient() = default;

  virtual void call(Call call, Deadline deadline, Done done) = 0;
  /// Ends the outstanding call, if any, with `reason`; what was sent has outcome unknown.
  virtual void cancel(const Status& reason) = 0;
  [[nodiscard]] virtual const std::string& name() const = 0;
  [[nodiscard]] virtual const std::string& url() const = 0;
};

}  // namespace pushrod
