// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/status/push_monitor.h"

#include <utility>

#include "common/time_text.h"

namespace pushrod::orchestrator {

namespace {

constexpr Duration kPublishEvery = std::chrono::milliseconds(100);

std::string pausedWord(Paused paused) {
  switch (paused) {
    case Paused::kYes:
      return "yes";
    case Paused::kNo:
      return "no";
    case Paused::kUnknown:
      break;
  }
  return "unknown";
}

std::string sessionWord(Session session) {
  switch (session) {
    case Session::kOpen:
      return "open";
    case Session::kClosed:
      return "closed";
    case Session::kUnknown:
      break;
  }
  return "unknown";
}

std::string channelWord(ChannelState channel) {
  switch (channel) {
    case ChannelState::kReady:
      return "ready";
    case ChannelState::kDead:
      return "dead";
    case ChannelState::kNone:
      return "none";
    case ChannelState::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace

void PushMonitor::begin(std::uint64_t epoch,
                        const std::string& version,
                        std::vector<EngineStatus> engines,
                        std::function<void(const PushProgress&)> progress) {
  epoch_ = epoch;
  engines_ = std::move(engines);
  callback_ = std::move(progress);
  progress_ = PushProgress();
  progress_.engines = static_cast<int>(engines_.size());
  parts_.board.setVersion(version);
  parts_.board.setEngines(engines_);
  parts_.metrics.pushStarted();
}

void PushMonitor::onManifest(std::uint64_t tensors, std::uint64_t bytes) {
  progress_.totalTensors = tensors;
  progress_.totalBytes = bytes;
}

void PushMonitor::publish(bool always) {
  const TimePoint now = parts_.clock.now();
  if (!always && now - lastPublished_ < kPublishEvery) {
    return;
  }
  lastPublished_ = now;
  if (parts_.plane != nullptr) {
    parts_.metrics.buffers(parts_.plane->bufferBytes(), parts_.plane->inFlightBytes());
  }
  parts_.board.setProgress(progress_);
  if (callback_) {
    callback_(progress_);
  }
}

void PushMonitor::onPhase(Phase left, double seconds, Phase entered, std::uint32_t attempt) {
  if (left != Phase::kIdle) {
    parts_.metrics.phaseLeft(left, seconds);
  }
  parts_.metrics.phaseEntered(entered);
  if (entered == Phase::kRecover) {
    parts_.metrics.resend();
  }
  if (entered == Phase::kStream) {
    progress_.tensors = 0;
    progress_.bytes = 0;
  }
  progress_.phase = entered;
  progress_.attempt = static_cast<int>(attempt);
  progress_.enginesReady = 0;
  parts_.board.setPhase(entered, attempt, epoch_);
  if (parts_.leader) {
    parts_.log.log(LogLevel::kDebug,
                   std::string(phaseName(entered)) + " begins, attempt " + std::to_string(attempt));
  }
  publish(true);
}

void PushMonitor::onReply(
    std::size_t engine, Goal goal, const Call& call, const Reply& reply, const Ledger& ledger) {
  EngineStatus& status = engines_[engine];
  status.session = sessionWord(ledger.session);
  status.paused = pausedWord(ledger.paused);
  status.channel = channelWord(ledger.channel);
  status.version = ledger.labelText;
  status.replyLag = ledger.lag;
  if (ledger.identity != nullptr) {
    status.release = ledger.identity->release;
    status.workers = ledger.identity->worldSize;
  }
  status.lastCall = callName(call.kind);
  status.lastAnswer = reply.status.ok() ? "ok" : reply.status.message();
  parts_.board.setEngine(engine, status);

  onEngine(engine, ledger);
  if (!reply.status.ok()) {
    lastAnswer_ = reply.status.message();
    parts_.log.log(
        LogLevel::kWarning,
        "engine " + status.name + ", " + status.lastCall + ": " + reply.status.message());
    return;
  }
  if (goal == Goal::kClean && call.kind == CallKind::kFinish) {
    // Closing one of this push's own sessions is part of recovery, not a stale one (P6).
    if (!ledger.startSent) {
      parts_.metrics.staleSessionClosed(status.name);
    } else if (!ledger.needsEmpty) {
      parts_.metrics.emptySession(status.name);
    }
  }
  if (goal == Goal::kVerified && call.kind == CallKind::kReadVersion && !ledger.proved) {
    parts_.metrics.versionMismatch(status.name);
  }
}

void PushMonitor::onEngine(std::size_t engine, const Ledger& ledger) {
  metrics::EngineGauges gauges;
  gauges.up = ledger.reach == Reach::kUp && !ledger.silent;
  gauges.paused = ledger.paused == Paused::kYes;
  gauges.quarantined = ledger.quarantined;
  gauges.current = ledger.proved;
  gauges.replyLag = ledger.lag;
  parts_.metrics.engine(engines_[engine].name, gauges);
}

void PushMonitor::onDropped(std::size_t engine, Phase phase, const Status& cause) {
  parts_.metrics.failure(phase, cause.code());
  parts_.log.log(LogLevel::kWarning,
                 "engine " + engines_[engine].name + " is left out of this push, which goes on " +
                     "with the others: " + cause.toString());
}

void PushMonitor::onVote(double seconds, const Status& status) {
  if (status.ok()) {
    parts_.metrics.agreement(seconds);
  } else {
    parts_.metrics.agreementFailed(status.code());
    if (status.code() == Code::kDeadlineExceeded) {
      parts_.metrics.timeout(progress_.phase);
    }
  }
}

void PushMonitor::onFailure(Phase phase, const Status& status) {
  parts_.metrics.failure(phase, status.code());
  if (status.code() == Code::kDeadlineExceeded) {
    parts_.metrics.timeout(phase);
  }
  // An engine's answer has been logged as it came.
  if (parts_.leader && status.message() != lastAnswer_) {
    parts_.log.log(LogLevel::kWarning, status.toString());
  }
}

void PushMonitor::onChannel(bool built) {
  if (built) {
    if (channelBuilt_) {
      parts_.metrics.channelRebuilt();
    }
    channelBuilt_ = true;
    channelOpen_ = true;
  } else if (channelOpen_) {
    channelOpen_ = false;
    parts_.metrics.channelAborted();
  }
}

void PushMonitor::onTensor(std::uint64_t tensors, std::uint64_t bytes) {
  progress_.tensors = tensors;
  progress_.bytes = bytes;
  publish(tensors == progress_.totalTensors);
}

void PushMonitor::onBytes(std::uint64_t bytes) {
  parts_.metrics.bytesSent(bytes);
}

void PushMonitor::onNote(const std::string& note) {
  if (parts_.leader) {
    parts_.log.log(LogLevel::kWarning, note);
  }
}

void PushMonitor::onEnd(const PushReport& report) {
  parts_.metrics.pushEnded(report.outcome, report.durationSeconds);
  parts_.metrics.pausedSeconds(report.pausedSeconds);
  parts_.metrics.casts(report.casts);
  parts_.board.addReport(report);
  callback_ = nullptr;
  const bool good =
      report.outcome == PushOutcome::kDone || report.outcome == PushOutcome::kRecovered;
  if (parts_.leader) {
    parts_.log.log(good ? LogLevel::kInfo : LogLevel::kError, report.summary());
  }
}

}  // namespace pushrod::orchestrator
