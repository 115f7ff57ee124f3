// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <pushrod/data_plane.h>
#include <pushrod/phase.h>
#include <pushrod/report.h>
#include <pushrod/status.h>

namespace pushrod::metrics::detail {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;

/// The phases that are labels: all but the resting states. Index 0 is kCheck.
inline constexpr std::size_t kLabelledPhases = 17;
/// The codes that are labels: all but kOk. Index 0 is kInvalidArgument.
inline constexpr std::size_t kCodes = 8;
inline constexpr std::size_t kOutcomes = 4;
inline constexpr std::size_t kResults = 5;

/// Every route that is a label; the last is "other", for what a caller should not have sent.
[[nodiscard]] std::span<const std::string_view> routes();
/// Index of a route in routes().
[[nodiscard]] std::size_t routeIndex(std::string_view route);

/// Series of one engine.
struct EngineSeries {
  Gauge* up = nullptr;
  Gauge* paused = nullptr;
  Gauge* quarantined = nullptr;
  Gauge* current = nullptr;
  Gauge* replyLag = nullptr;
  Counter* staleSessions = nullptr;
  Counter* versionMismatches = nullptr;
  Counter* emptySessions = nullptr;
  std::vector<Counter*> failures;  ///< by route
};

/// The families and the series with closed label sets, made once. prometheus-cpp's objects are
/// thread-safe each; the set of engines is not, so its owner locks around it.
class Families {
 public:
  explicit Families(TransportKind transport);

  EngineSeries addEngine(const std::string& name);
  void removeEngine(const EngineSeries& series);
  /// The text page, ordered by name and labels.
  [[nodiscard]] std::string page() const;

  std::array<Counter*, kOutcomes> pushes{};
  Histogram* pushDuration = nullptr;
  std::array<Histogram*, kLabelledPhases> phaseDuration{};
  Counter* pausedSeconds = nullptr;
  std::vector<std::array<Counter*, kResults>> requests;  ///< by route
  std::vector<Histogram*> requestDuration;               ///< by route
  std::array<Counter*, kLabelledPhases> timeouts{};
  std::array<std::array<Counter*, kCodes>, kLabelledPhases> failures{};
  Counter* resends = nullptr;
  Counter* channelRebuilds = nullptr;
  Counter* channelAborts = nullptr;
  Counter* casts = nullptr;
  Counter* bytesSent = nullptr;
  Histogram* agreementDuration = nullptr;
  std::array<Counter*, kCodes> agreementFailures{};
  Gauge* inProgress = nullptr;
  std::array<Gauge*, kLabelledPhases> phase{};
  Gauge* lastPush = nullptr;
  Gauge* lastSuccess = nullptr;
  Gauge* buffersAllocated = nullptr;
  Gauge* buffersInFlight = nullptr;

 private:
  void addPushes(const std::string& transport);
  void addRequests(const std::string& transport);
  void addFailures(const std::string& transport);
  void addChannel(const std::string& transport);
  void addEngineFamilies();
  void addBuildInfo();

  struct EngineFamilies {
    prometheus::Family<Gauge>*up, *paused, *quarantined, *current, *replyLag;
    prometheus::Family<Counter>*staleSessions, *versionMismatches, *emptySessions, *failures;
  };

  prometheus::Registry registry_;
  EngineFamilies engine_{};
};

}  // namespace pushrod::metrics::detail
