// SPDX-License-Identifier: Apache-2.0
#include "tools/progress_line.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <unistd.h>

#include "common/bounded_write.h"
#include "tools/console.h"

namespace pushrod::tools {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(200);

void writeText(std::string_view text) {
  // What is shown is old by the next time: nobody waits for a terminal that was stopped.
  common::writeWithin(STDERR_FILENO, text, std::chrono::milliseconds::zero());
}

}  // namespace

std::string progressText(const PushProgress& progress, double bytesPerSecond) {
  std::string text(phaseName(progress.phase));
  if (progress.totalBytes > 0) {
    const double share =
        static_cast<double>(progress.bytes) / static_cast<double>(progress.totalBytes) * 100;
    text += "  " + fixedText(std::min(share, 100.0), 0) + "%  " + bytesText(progress.bytes) +
            " of " + bytesText(progress.totalBytes);
  }
  if (bytesPerSecond > 0) {
    text += "  " + fixedText(bytesPerSecond / 1e9, 2) + " GB/s";
  }
  text +=
      "  engines " + std::to_string(progress.enginesReady) + "/" + std::to_string(progress.engines);
  if (progress.attempt > 1) {
    text += "  attempt " + std::to_string(progress.attempt);
  }
  return text;
}

ProgressLine::ProgressLine() : thread_([this] { run(); }) {}

ProgressLine::~ProgressLine() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  changed_.notify_one();
  thread_.join();
  writeText("\r\033[K");
}

void ProgressLine::update(const PushProgress& progress) {
  {
    const std::lock_guard lock(mutex_);
    latest_ = progress;
    fresh_ = true;
  }
  changed_.notify_one();
}

bool ProgressLine::wanted() {
  return ::isatty(STDERR_FILENO) == 1;
}

void ProgressLine::run() {
  using Seconds = std::chrono::duration<double>;
  std::uint64_t lastBytes = 0;
  auto lastTime = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!end_) {
    if (!changed_.wait_for(lock, kInterval, [this] { return fresh_ || end_; }) || end_) {
      continue;
    }
    fresh_ = false;
    const PushProgress progress = latest_;
    lock.unlock();
    const auto now = std::chrono::steady_clock::now();
    const double seconds = Seconds(now - lastTime).count();
    double rate = 0;
    if (progress.bytes > lastBytes && seconds > 0) {
      rate = static_cast<double>(progress.bytes - lastBytes) / seconds;
    }
    lastBytes = progress.bytes;
    lastTime = now;
    writeText("\r\033[K" + progressText(progress, rate));
    lock.lock();
    changed_.wait_for(lock, kInterval, [this] { return end_; });
  }
}

}  // namespace pushrod::tools
