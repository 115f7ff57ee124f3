// SPDX-License-Identifier: Apache-2.0
#include "metrics/families.h"

#include <algorithm>

#include <prometheus/text_serializer.h>

#include <pushrod/engine_client.h>
#include <pushrod/version.h>

namespace pushrod::metrics::detail {
namespace {

using Buckets = Histogram::BucketBoundaries;

const Buckets& pushBuckets() {
  static const Buckets kBounds{
      0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200};
  return kBounds;
}

const Buckets& phaseBuckets() {
  static const Buckets kBounds{
      0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600, 1800, 7200};
  return kBounds;
}

const Buckets& requestBuckets() {
  static const Buckets kBounds{
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 600, 1800};
  return kBounds;
}

const Buckets& agreementBuckets() {
  static const Buckets kBounds{
      1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60};
  return kBounds;
}

std::string phaseLabel(std::size_t index) {
  return std::string(
      phaseName(static_cast<Phase>(index + static_cast<std::size_t>(Phase::kCheck))));
}

std::string codeLabel(std::size_t index) {
  return std::string(
      codeName(static_cast<Code>(index + static_cast<std::size_t>(Code::kInvalidArgument))));
}

// Help texts stay on one line: the serializer does not escape them.
auto& counterFamily(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

auto& gaugeFamily(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

auto& histogramFamily(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

}  // namespace

std::span<const std::string_view> routes() {
  static const std::vector<std::string_view> kAll = [] {
    std::vector<std::string_view> list;
    for (std::size_t i = 0; i < kCallKindCount; ++i) {
      const auto kind = static_cast<CallKind>(i);
      // Composite calls have no route of their own; their requests have.
      if (kind != CallKind::kIdentify && kind != CallKind::kMeasureLag &&
          kind != CallKind::kReadSession) {
        list.push_back(callName(kind));
      }
    }
    for (const char* route : {"health",
                              "version",
                              "get_world_size",
                              "models",
                              "server_info",
                              "is_sleeping",
                              "metrics",
                              "collective_rpc",
                              "start_draft_weight_update",
                              "reset_mm_cache",
                              "reset_encoder_cache",
                              "openapi.json",
                              "other"}) {
      list.emplace_back(route);
    }
    return list;
  }();
  return kAll;
}

std::size_t routeIndex(std::string_view route) {
  const auto all = routes();
  const auto found = std::find(all.begin(), all.end(), route);
  return found == all.end() ? all.size() - 1 : static_cast<std::size_t>(found - all.begin());
}

Families::Families(TransportKind transport) {
  const std::string label(transportName(transport));
  addPushes(label);
  addRequests(label);
  addFailures(label);
  addChannel(label);
  addEngineFamilies();
  addBuildInfo();
}

void Families::addPushes(const std::string& transport) {
  auto& byOutcome =
      counterFamily(registry_, "pushrod_pushes_total", "Weight pushes ended, by outcome.");
  for (std::size_t i = 0; i < kOutcomes; ++i) {
    const std::string outcome(pushOutcomeName(static_cast<PushOutcome>(i)));
    pushes[i] = &byOutcome.Add({{"transport", transport}, {"outcome", outcome}});
  }
  pushDuration = &histogramFamily(registry_,
                                  "pushrod_push_duration_seconds",
                                  "Time from the start of a push to its verdict.")
                      .Add({{"transport", transport}}, pushBuckets());
  auto& durations = histogramFamily(
      registry_, "pushrod_phase_duration_seconds", "Time that a push spent in one phase.");
  auto& phases =
      gaugeFamily(registry_, "pushrod_push_phase", "1 for the phase that the running push is in.");
  for (std::size_t i = 0; i < kLabelledPhases; ++i) {
    const std::string name = phaseLabel(i);
    phaseDuration[i] = &durations.Add({{"transport", transport}, {"phase", name}}, phaseBuckets());
    phase[i] = &phases.Add({{"phase", name}});
  }
  pausedSeconds = &counterFamily(registry_,
                                 "pushrod_generation_paused_seconds_total",
                                 "Time from the first pause sent to the last resume answered.")
                       .Add({});
  inProgress =
      &gaugeFamily(registry_, "pushrod_push_in_progress", "1 while a push is running.").Add({});
  lastPush = &gaugeFamily(registry_,
                          "pushrod_last_push_timestamp_seconds",
                          "When the last push ended, 0 before the first.")
                  .Add({});
  lastSuccess = &gaugeFamily(registry_,
                             "pushrod_last_success_timestamp_seconds",
                             "When the last done or recovered push ended, 0 before the first.")
                     .Add({});
}

void Families::addRequests(const std::string& transport) {
  constexpr std::array<const char*, kResults> kResultNames = {
      "ok", "rejected", "error", "timeout", "unreachable"};
  auto& counts = counterFamily(
      registry_, "pushrod_requests_total", "HTTP requests to engines, by route and result.");
  auto& durations = histogramFamily(
      registry_, "pushrod_request_duration_seconds", "Time from a request to its answer or end.");
  for (const std::string_view name : routes()) {
    const std::string route(name);
    auto& results = requests.emplace_back();
    for (std::size_t i = 0; i < kResults; ++i) {
      results[i] =
          &counts.Add({{"transport", transport}, {"route", route}, {"result", kResultNames[i]}});
    }
    requestDuration.push_back(&durations.Add({{"route", route}}, requestBuckets()));
  }
}

void Families::addFailures(const std::string& transport) {
  auto& limits = counterFamily(
      registry_, "pushrod_timeouts_total", "Limits of the configuration that fired, by phase.");
  auto& byCode = counterFamily(
      registry_, "pushrod_failures_total", "First causes of failed attempts, by phase and code.");
  for (std::size_t i = 0; i < kLabelledPhases; ++i) {
    const std::string name = phaseLabel(i);
    timeouts[i] = &limits.Add({{"transport", transport}, {"phase", name}});
    for (std::size_t code = 0; code < kCodes; ++code) {
      failures[i][code] =
          &byCode.Add({{"transport", transport}, {"phase", name}, {"code", codeLabel(code)}});
    }
  }
  agreementDuration = &histogramFamily(registry_,
                                       "pushrod_agreement_duration_seconds",
                                       "Time of one vote of all trainer ranks.")
                           .Add({}, agreementBuckets());
  auto& votes = counterFamily(
      registry_, "pushrod_agreement_failures_total", "Votes without a verdict, by code.");
  for (std::size_t code = 0; code < kCodes; ++code) {
    agreementFailures[code] = &votes.Add({{"code", codeLabel(code)}});
  }
}

void Families::addChannel(const std::string& transport) {
  const prometheus::Labels labels{{"transport", transport}};
  resends =
      &counterFamily(registry_, "pushrod_resends_total", "Whole-model resends after a failure.")
           .Add(labels);
  channelRebuilds = &counterFamily(registry_,
                                   "pushrod_channel_rebuilds_total",
                                   "Data channels built again after the first.")
                         .Add(labels);
  channelAborts =
      &counterFamily(registry_, "pushrod_channel_aborts_total", "Data channels ended by an abort.")
           .Add(labels);
  bytesSent = &counterFamily(registry_,
                             "pushrod_bytes_sent_total",
                             "Payload bytes written to engines, all workers together.")
                   .Add(labels);
  casts = &counterFamily(registry_,
                         "pushrod_dtype_casts_total",
                         "Tensors cast to the dtype that was declared for them.")
               .Add({});
  auto& buffers = gaugeFamily(registry_, "pushrod_buffer_bytes", "Bytes of packed send buffers.");
  buffersAllocated = &buffers.Add({{"state", "allocated"}});
  buffersInFlight = &buffers.Add({{"state", "in_flight"}});
}

void Families::addEngineFamilies() {
  engine_.up = &gaugeFamily(registry_, "pushrod_engine_up", "1 while the engine answers.");
  engine_.paused = &gaugeFamily(
      registry_, "pushrod_engine_paused", "1 while the engine's generation is paused.");
  engine_.quarantined = &gaugeFamily(
      registry_, "pushrod_engine_quarantined", "1 while the engine is left out after a loss.");
  engine_.current = &gaugeFamily(
      registry_, "pushrod_engine_current", "1 while the engine holds the last pushed version.");
  engine_.replyLag = &gaugeFamily(registry_,
                                  "pushrod_engine_reply_lag",
                                  "Calls by which the replies of the engine's workers are late.");
  engine_.staleSessions = &counterFamily(registry_,
                                         "pushrod_stale_sessions_closed_total",
                                         "Update sessions of an earlier run that were closed.");
  engine_.versionMismatches = &counterFamily(registry_,
                                             "pushrod_version_mismatches_total",
                                             "Reads of a version that was not the pushed one.");
  engine_.emptySessions =
      &counterFamily(registry_,
                     "pushrod_empty_sessions_total",
                     "Empty sessions that cleared half-loaded layers before a stream.");
  engine_.failures = &counterFamily(registry_,
                                    "pushrod_engine_failures_total",
                                    "Requests that did not end as ok, by engine and route.");
}

void Families::addBuildInfo() {
  // NCCL and CUDA are loaded at run time, so no build has a version of them.
  gaugeFamily(registry_, "pushrod_build_info", "Always 1; the labels tell what was built.")
      .Add({{"version", PUSHROD_VERSION},
            {"gloo", PUSHROD_GLOO_VERSION},
            {"nccl", "none"},
            {"cuda", "none"}})
      .Set(1);
}

EngineSeries Families::addEngine(const std::string& name) {
  const prometheus::Labels labels{{"engine", name}};
  EngineSeries series;
  series.up = &engine_.up->Add(labels);
  series.paused = &engine_.paused->Add(labels);
  series.quarantined = &engine_.quarantined->Add(labels);
  series.current = &engine_.current->Add(labels);
  series.replyLag = &engine_.replyLag->Add(labels);
  series.staleSessions = &engine_.staleSessions->Add(labels);
  series.versionMismatches = &engine_.versionMismatches->Add(labels);
  series.emptySessions = &engine_.emptySessions->Add(labels);
  for (const std::string_view route : routes()) {
    series.failures.push_back(
        &engine_.failures->Add({{"engine", name}, {"route", std::string(route)}}));
  }
  return series;
}

void Families::removeEngine(const EngineSeries& series) {
  engine_.up->Remove(series.up);
  engine_.paused->Remove(series.paused);
  engine_.quarantined->Remove(series.quarantined);
  engine_.current->Remove(series.current);
  engine_.replyLag->Remove(series.replyLag);
  engine_.staleSessions->Remove(series.staleSessions);
  engine_.versionMismatches->Remove(series.versionMismatches);
  engine_.emptySessions->Remove(series.emptySessions);
  for (Counter* failure : series.failures) {
    engine_.failures->Remove(failure);
  }
}

std::string Families::page() const {
  auto families = registry_.Collect();
  std::sort(families.begin(), families.end(), [](const auto& a, const auto& b) {
    return a.name < b.name;
  });
  for (auto& family : families) {
    std::sort(family.metric.begin(), family.metric.end(), [](const auto& a, const auto& b) {
      return std::lexicographical_compare(a.label.begin(),
                                          a.label.end(),
                                          b.label.begin(),
                                          b.label.end(),
                                          [](const auto& x, const auto& y) {
                                            return x.name != y.name ? x.name < y.name
                                                                    : x.value < y.value;
                                          });
    });
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace pushrod::metrics::detail
