// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/status/stall_watch.h"

#include <algorithm>
#include <limits>

namespace pushrod::orchestrator {

namespace {

constexpr Duration kShortest{50};
constexpr Duration kLongest{500};
constexpr Duration kRateOver{1000};
/// Ranks and engines told of in a log.
constexpr std::size_t kMostLogged = 16;

Duration span(TimePoint from, TimePoint to) {
  return std::max(std::chrono::duration_cast<Duration>(to - from), Duration::zero());
}

std::uint32_t small(std::uint64_t value) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

/// Fine enough for half of the shortest limit.
Duration periodOf(const TimeoutsConfig& limits) {
  const Duration shortest = std::min({limits.gather,
                                      limits.agreement,
                                      limits.progress,
                                      limits.drain,
                                      limits.request,
                                      limits.init,
                                      limits.pause,
                                      limits.resume,
                                      limits.connect});
  constexpr int kLooks = 10;
  return std::clamp(shortest / kLooks, kShortest, kLongest);
}

std::optional<OwnWait> waitOf(const std::optional<FlightOperation>& operation, TimePoint now) {
  if (!operation) {
    return std::nullopt;
  }
  return OwnWait{std::string(operation->name), span(operation->since, now), operation->limit};
}

}  // namespace

StallWatch::StallWatch(StallWatchParts parts)
    : parts_(parts), period_(periodOf(parts.config.timeouts)) {}

StallWatch::~StallWatch() {
  parts_.executor.cancel(timer_);
}

void StallWatch::begin(std::uint64_t epoch, const std::string& version) {
  running_ = true;
  epoch_ = epoch;
  version_ = version;
  began_ = placeSince_ = measuredAt_ = parts_.executor.now();
  place_ = VoteKey{};
  measuredBytes_ = kibPerSecond_ = 0;
  told_.clear();
  arm();
}

void StallWatch::end() {
  running_ = false;
  parts_.executor.cancel(timer_);
  timer_ = 0;
  parts_.board.setWaiting({});
}

void StallWatch::arm() {
  timer_ = parts_.executor.postAt(parts_.executor.now() + period_, [this] {
    timer_ = 0;
    look();
    arm();
  });
}

std::string StallWatch::tensorText(const VoteKey& at,
                                   std::uint64_t begun,
                                   std::uint64_t returned) const {
  const Manifest* manifest = parts_.recorder.manifest(at.ofDraft());
  if (begun == returned || manifest == nullptr) {
    return {};
  }
  if (returned >= manifest->tensors.size()) {
    return "the end";
  }
  const TensorSpec& tensor = manifest->tensors[static_cast<std::size_t>(returned)];
  return std::to_string(returned) + " " + tensor.name + " " + shapeText(tensor.shape);
}

RankStand StallWatch::own() const {
  const FlightRecorder& recorder = parts_.recorder;
  const TimePoint now = parts_.executor.now();
  RankStand rank;
  rank.rank = parts_.rank;
  rank.key = place_;
  rank.stage = recorder.place().stage;
  rank.begun = recorder.begun();
  rank.returned = recorder.returned();
  rank.tensor = tensorText(rank.key, rank.begun, rank.returned);
  rank.age = span(placeSince_, now);
  rank.still = span(recorder.lastProgress(), now);
  rank.kibPerSecond = kibPerSecond_;
  return rank;
}

void StallWatch::measureRate() {
  const TimePoint now = parts_.executor.now();
  const Duration over = span(measuredAt_, now);
  if (over < kRateOver) {
    return;
  }
  const std::uint64_t bytes = parts_.recorder.passBytes();
  constexpr std::uint64_t kMillis = 1000;
  constexpr std::uint64_t kKib = 1024;
  const std::uint64_t fresh = bytes > measuredBytes_ ? bytes - measuredBytes_ : 0;
  kibPerSecond_ = fresh / kKib * kMillis / static_cast<std::uint64_t>(over.count());
  measuredAt_ = now;
  measuredBytes_ = bytes;
}

StallInput StallWatch::input() {
  FlightRecorder& recorder = parts_.recorder;
  const TimePoint now = parts_.executor.now();
  const PushState& place = recorder.place();
  const VoteKey key{epoch_, place.attempt, place.phase, place.voteStep};
  if (key != place_) {
    place_ = key;
    placeSince_ = now;
  }
  measureRate();
  const TimeoutsConfig& limits = parts_.config.timeouts;
  StallInput input;
  input.push = std::to_string(epoch_) + ", version " + version_ + ",";
  input.pushAge = span(began_, now);
  input.pushLimit = limits.push;
  input.agreement = limits.agreement;
  input.progress = limits.progress;
  input.own = own();
  for (const ranks::RankPosition& each : parts_.exchange.positions()) {
    RankStand rank;
    rank.rank = each.rank;
    rank.key = each.key;
    rank.stage = static_cast<Stage>(each.progress.stage < kStageCount ? each.progress.stage : 0);
    rank.begun = each.progress.begun;
    rank.returned = each.progress.returned;
    rank.tensor = tensorText(rank.key, rank.begun, rank.returned);
    rank.age = each.age;
    rank.still = each.still;
    rank.silence = each.silence;
    rank.kibPerSecond = each.progress.kibPerSecond;
    input.others.push_back(std::move(rank));
  }
  const std::vector<FlightCall>& engines = recorder.engines();
  for (std::size_t i = 0; i < engines.size(); ++i) {
    const FlightCall& engine = engines[i];
    const bool streams = place.phase == Phase::kStream;
    input.engines.push_back({engine.name,
                             std::string(engine.call),
                             engine.out,
                             engine.call.empty() ? Duration::zero() : span(engine.since, now),
                             engine.limit,
                             streams ? recorder.declared(i) : 0,
                             streams ? engine.moved : 0,
                             span(engine.movedAt, now)});
  }
  input.operation = waitOf(recorder.operation(), now);
  input.drain = waitOf(recorder.drain(), now);
  return input;
}

void StallWatch::tell(const StallInput& input, LogLevel level) {
  for (const std::string& line : stallLines(input, kMostLogged)) {
    parts_.log.log(level, line);
  }
}

void StallWatch::look() {
  const StallInput now = input();
  const StallReport report = makeStallReport(now);
  parts_.exchange.setProgress({static_cast<std::uint8_t>(now.own.stage),
                               small(now.own.begun),
                               small(now.own.returned),
                               small(now.own.kibPerSecond)});
  parts_.board.setWaiting(stallJson(now, report));
  std::set<std::string> going;
  bool fresh = false;
  for (const StallWait& wait : report.waits) {
    if (!wait.stalled()) {
      continue;
    }
    going.insert(wait.id);
    if (!told_.contains(wait.id)) {
      fresh = true;
      parts_.log.log(LogLevel::kWarning, wait.text);
    }
  }
  told_ = std::move(going);
  // Rank 0 knows all of them; the others' own lines would only repeat it.
  if (fresh && parts_.rank == 0) {
    tell(now, LogLevel::kWarning);
  }
}

void StallWatch::logNow() {
  if (!running_) {
    parts_.log.log(LogLevel::kWarning, "state asked for: no push runs on this rank");
    return;
  }
  const StallInput now = input();
  const StallReport report = makeStallReport(now);
  parts_.board.setWaiting(stallJson(now, report));
  // As warnings, so that what somebody asked for is not dropped by log.level or log.ranks.
  for (const StallWait& wait : report.waits) {
    parts_.log.log(LogLevel::kWarning, "state asked for: " + wait.text);
  }
  tell(now, LogLevel::kWarning);
}

}  // namespace pushrod::orchestrator
