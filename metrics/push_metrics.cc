// SPDX-License-Identifier: Apache-2.0
#include "metrics/push_metrics.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>

#include "metrics/families.h"

namespace pushrod::metrics {
namespace {

/// Index of a phase among the labels; nothing for the resting states.
std::optional<std::size_t> indexOf(Phase phase) {
  const auto value = static_cast<std::size_t>(phase);
  constexpr auto kFirst = static_cast<std::size_t>(Phase::kCheck);
  if (value < kFirst || value >= kFirst + detail::kLabelledPhases) {
    return std::nullopt;
  }
  return value - kFirst;
}

std::optional<std::size_t> indexOf(Code code) {
  const auto value = static_cast<std::size_t>(code);
  constexpr auto kFirst = static_cast<std::size_t>(Code::kInvalidArgument);
  if (value < kFirst || value >= kFirst + detail::kCodes) {
    return std::nullopt;
  }
  return value - kFirst;
}

double epochSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double flag(bool value) {
  return value ? 1.0 : 0.0;
}

}  // namespace

struct PushMetrics::Impl {
  explicit Impl(TransportKind transport) : families(transport) {}

  /// Does `use` with the engine's series, if it is one of ours. Locked, as series may go.
  template <typename Use>
  void withEngine(std::string_view name, Use use) {
    const std::lock_guard lock(mutex);
    if (const auto found = engines.find(name); found != engines.end()) {
      use(found->second);
    }
  }

  detail::Families families;
  mutable std::mutex mutex;
  std::map<std::string, detail::EngineSeries, std::less<>> engines;
};

PushMetrics::PushMetrics(TransportKind transport, const std::vector<std::string>& engines)
    : impl_(std::make_unique<Impl>(transport)) {
  setEngines(engines);
}

PushMetrics::~PushMetrics() = default;

void PushMetrics::pushStarted() {
  impl_->families.inProgress->Set(1);
}

void PushMetrics::pushEnded(PushOutcome outcome, double seconds) {
  detail::Families& all = impl_->families;
  all.pushes.at(static_cast<std::size_t>(outcome))->Increment();
  all.pushDuration->Observe(seconds);
  const double now = epochSeconds();
  all.lastPush->Set(now);
  if (outcome == PushOutcome::kDone || outcome == PushOutcome::kRecovered) {
    all.lastSuccess->Set(now);
  }
  for (auto* phase : all.phase) {
    phase->Set(0);
  }
  all.inProgress->Set(0);
}

void PushMetrics::phaseEntered(Phase phase) {
  const auto entered = indexOf(phase);
  for (std::size_t i = 0; i < detail::kLabelledPhases; ++i) {
    impl_->families.phase.at(i)->Set(flag(i == entered));
  }
}

void PushMetrics::phaseLeft(Phase phase, double seconds) {
  if (const auto index = indexOf(phase)) {
    impl_->families.phase.at(*index)->Set(0);
    impl_->families.phaseDuration.at(*index)->Observe(seconds);
  }
}

void PushMetrics::pausedSeconds(double seconds) {
  impl_->families.pausedSeconds->Increment(seconds);
}

void PushMetrics::request(std::string_view engine,
                          std::string_view route,
                          RequestResult result,
                          double seconds) {
  const std::size_t index = detail::routeIndex(route);
  impl_->families.requests.at(index).at(static_cast<std::size_t>(result))->Increment();
  impl_->families.requestDuration.at(index)->Observe(seconds);
  if (result != RequestResult::kOk) {
    impl_->withEngine(
        engine, [index](detail::EngineSeries& series) { series.failures.at(index)->Increment(); });
  }
}

void PushMetrics::timeout(Phase phase) {
  if (const auto index = indexOf(phase)) {
    impl_->families.timeouts.at(*index)->Increment();
  }
}

void PushMetrics::failure(Phase phase, Code code) {
  const auto phaseIndex = indexOf(phase);
  const auto codeIndex = indexOf(code);
  if (phaseIndex && codeIndex) {
    impl_->families.failures.at(*phaseIndex).at(*codeIndex)->Increment();
  }
}

void PushMetrics::resend() {
  impl_->families.resends->Increment();
}

void PushMetrics::channelRebuilt() {
  impl_->families.channelRebuilds->Increment();
}

void PushMetrics::channelAborted() {
  impl_->families.channelAborts->Increment();
}

void PushMetrics::staleSessionClosed(std::string_view engine) {
  impl_->withEngine(engine,
                    [](detail::EngineSeries& series) { series.staleSessions->Increment(); });
}

void PushMetrics::versionMismatch(std::string_view engine) {
  impl_->withEngine(engine,
                    [](detail::EngineSeries& series) { series.versionMismatches->Increment(); });
}

void PushMetrics::emptySession(std::string_view engine) {
  impl_->withEngine(engine,
                    [](detail::EngineSeries& series) { series.emptySessions->Increment(); });
}

void PushMetrics::casts(std::uint64_t count) {
  impl_->families.casts->Increment(static_cast<double>(count));
}

void PushMetrics::bytesSent(std::uint64_t bytes) {
  impl_->families.bytesSent->Increment(static_cast<double>(bytes));
}

void PushMetrics::agreement(double seconds) {
  impl_->families.agreementDuration->Observe(seconds);
}

void PushMetrics::agreementFailed(Code code) {
  if (const auto index = indexOf(code)) {
    impl_->families.agreementFailures.at(*index)->Increment();
  }
}

void PushMetrics::buffers(std::uint64_t allocated, std::uint64_t inFlight) {
  impl_->families.buffersAllocated->Set(static_cast<double>(allocated));
  impl_->families.buffersInFlight->Set(static_cast<double>(inFlight));
}

void PushMetrics::engine(std::string_view engine, const EngineGauges& gauges) {
  impl_->withEngine(engine, [&gauges](detail::EngineSeries& series) {
    series.up->Set(flag(gauges.up));
    series.paused->Set(flag(gauges.paused));
    series.quarantined->Set(flag(gauges.quarantined));
    series.current->Set(flag(gauges.current));
    series.replyLag->Set(gauges.replyLag);
  });
}

void PushMetrics::setEngines(const std::vector<std::string>& engines) {
  const std::lock_guard lock(impl_->mutex);
  std::erase_if(impl_->engines, [&](const auto& entry) {
    const bool gone = std::find(engines.begin(), engines.end(), entry.first) == engines.end();
    if (gone) {
      impl_->families.removeEngine(entry.second);
    }
    return gone;
  });
  for (const std::string& name : engines) {
    if (!impl_->engines.contains(name)) {
      impl_->engines.emplace(name, impl_->families.addEngine(name));
    }
  }
}

std::string PushMetrics::render() const {
  return impl_->families.page();
}

}  // namespace pushrod::metrics
