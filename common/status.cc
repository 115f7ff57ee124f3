// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <pushrod/status.h>

namespace pushrod {

namespace {

constexpr std::array<std::string_view, 9> kCodeNames = {"ok",
                                                        "invalid_argument",
                                                        "failed_precondition",
                                                        "unavailable",
                                                        "deadline_exceeded",
                                                        "cancelled",
                                                        "aborted",
                                                        "data_mismatch",
                                                        "internal"};
constexpr std::array<std::string_view, 4> kOutcomeNames = {
    "not_sent", "rejected", "applied", "unknown"};
constexpr std::size_t kMaxNotes = 16;

}  // namespace

std::string_view codeName(Code code) {
  return kCodeNames.at(static_cast<std::size_t>(code));
}

std::string_view outcomeName(Outcome outcome) {
  return kOutcomeNames.at(static_cast<std::size_t>(outcome));
}

Status Status::at(const Origin& origin) const {
  Status copy = *this;
  Origin& own = copy.origin_;
  if (own.rank < 0) {
    own.rank = origin.rank;
  }
  if (own.engine.empty()) {
    own.engine = origin.engine;
  }
  if (own.phase == Phase::kIdle) {
    own.phase = origin.phase;
  }
  if (own.epoch == 0) {
    own.epoch = origin.epoch;
  }
  if (own.attempt == 0) {
    own.attempt = origin.attempt;
  }
  return copy;
}

Status Status::with(Outcome outcome) const {
  Status copy = *this;
  copy.outcome_ = outcome;
  return copy;
}

Status Status::prefixed(std::string_view prefix) const {
  Status copy = *this;
  copy.message_ = std::string(prefix) + ": " + message_;
  return copy;
}

void Status::addNote(std::string note) {
  if (notes_.size() < kMaxNotes) {
    notes_.push_back(std::move(note));
    return;
  }
  ++dropped_;
  notes_.back() = std::to_string(dropped_ + 1) + " more errors";
}

void Status::merge(const Status& later) {
  if (later.ok()) {
    return;
  }
  if (ok()) {
    *this = later;
    return;
  }
  const std::string text = later.toString();
  // One failure that is told twice, by its phase and by its vote, is one note or none.
  if (text != toString() && std::find(notes_.begin(), notes_.end(), text) == notes_.end()) {
    addNote(text);
  }
}

std::string Status::toString() const {
  if (ok()) {
    return "ok";
  }
  std::string text;
  if (origin_.rank >= 0) {
    text += "rank " + std::to_string(origin_.rank) + ", ";
  }
  if (!origin_.engine.empty()) {
    text += "engine " + origin_.engine + ", ";
  }
  if (origin_.phase != Phase::kIdle) {
    text += std::string(phaseName(origin_.phase)) + ", ";
  }
  if (origin_.attempt > 0) {
    text += "attempt " + std::to_string(origin_.attempt) + ", ";
  }
  if (!text.empty()) {
    text.replace(text.size() - 2, 2, ": ");
  }
  return text + message_ + " [" + std::string(codeName(code_)) + "]";
}

}  // namespace pushrod
