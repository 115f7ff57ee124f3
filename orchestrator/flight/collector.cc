// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/flight/collector.h"

#include <algorithm>
#include <utility>

namespace pushrod::orchestrator {

namespace {

/// All parts together, and the least and the most of one rank.
constexpr std::size_t kAll = std::size_t{8} << 20;
constexpr std::size_t kLeast = std::size_t{4} << 10;
constexpr std::size_t kMost = std::size_t{256} << 10;
/// A part that is over its budget because of its first line alone.
constexpr std::size_t kSlack = std::size_t{128} << 10;

}  // namespace

FlightCollector::FlightCollector(Executor& executor,
                                 ranks::RecordExchange& exchange,
                                 const Rank& rank,
                                 Own own)
    : executor_(executor),
      exchange_(exchange),
      rank_(rank.rank),
      size_(rank.size),
      own_(std::move(own)) {
  exchange_.setRecordListener(this);
}

FlightCollector::~FlightCollector() {
  exchange_.setRecordListener(nullptr);
  executor_.cancel(timer_);
}

std::size_t FlightCollector::budget(int ranks) {
  return std::clamp(kAll / static_cast<std::size_t>(std::max(ranks, 1)), kLeast, kMost);
}

void FlightCollector::begin(std::uint64_t epoch) {
  epoch_ = epoch;
  sent_ = ended_ = false;
  parts_.clear();
  gone_.clear();
}

void FlightCollector::send() {
  if (!sent_ && exchange_.reaches(0)) {
    sent_ = true;
    exchange_.sendRecord(epoch_, own_(budget(size_)));
  }
}

void FlightCollector::skip() {
  if (rank_ == 0) {
    exchange_.endRecords(epoch_);
  }
}

void FlightCollector::collect(Done done) {
  done_ = std::move(done);
  if (rank_ == 0) {
    parts_[0].text = own_(budget(size_));
    parts_[0].whole = true;
    exchange_.askRecords(epoch_);
  } else {
    send();
  }
  timer_ = executor_.postAt(executor_.now() + kLimit, [this] {
    timer_ = 0;
    end();
  });
  endIfComplete();
}

void FlightCollector::onRecordAsked(std::uint64_t epoch) {
  if (epoch == epoch_) {
    send();
  }
}

void FlightCollector::onRecordPart(const ranks::RecordPart& part) {
  if (rank_ != 0 || part.epoch != epoch_) {
    return;
  }
  Part& known = parts_[part.rank];
  if (known.whole || known.refused) {
    return;
  }
  if (part.number != known.next || known.text.size() + part.bytes.size() > budget(size_) + kSlack) {
    known = Part();
    known.refused = true;
  } else {
    ++known.next;
    known.text += part.bytes;
    known.whole = part.last;
  }
  endIfComplete();
}

void FlightCollector::onRecordEnded(std::uint64_t epoch) {
  if (epoch == epoch_) {
    ended_ = true;
    endIfComplete();
  }
}

void FlightCollector::onRankGone(int rank) {
  gone_.insert(rank);
  endIfComplete();
}

void FlightCollector::endIfComplete() {
  if (!done_) {
    return;
  }
  bool complete = ended_ || (rank_ != 0 && !exchange_.reaches(0));
  if (rank_ == 0) {
    complete = true;
    for (int rank = 1; rank < size_ && complete; ++rank) {
      const auto part = parts_.find(rank);
      complete = (part != parts_.end() && (part->second.whole || part->second.refused)) ||
                 !exchange_.reaches(rank);
    }
  }
  if (complete) {
    end();
  }
}

void FlightCollector::cut() {
  if (done_) {
    end();
  }
}

void FlightCollector::end() {
  executor_.cancel(std::exchange(timer_, 0));
  if (rank_ == 0) {
    exchange_.endRecords(epoch_);
  }
  executor_.post([done = std::exchange(done_, nullptr), parts = take()]() mutable {
    if (done) {
      done(std::move(parts));
    }
  });
}

std::string FlightCollector::whyMissing(int rank) const {
  if (rank_ != 0) {
    return "only rank 0, which is gone, could reach it";
  }
  const auto part = parts_.find(rank);
  if (part != parts_.end() && part->second.refused) {
    return "it sent more than is taken, or not in order";
  }
  if (gone_.contains(rank)) {
    return "it is gone";
  }
  return exchange_.reaches(rank) ? "it did not answer in time" : "it is not connected";
}

std::optional<FlightCollector::Parts> FlightCollector::take() {
  // Rank 0's word that all is done, or its being there still, leaves the writing to it.
  if (rank_ != 0 && (rank_ != 1 || ended_ || exchange_.reaches(0))) {
    return std::nullopt;
  }
  Parts result;
  if (rank_ != 0) {
    parts_[rank_].text = own_(budget(size_));
    parts_[rank_].whole = true;
  }
  for (int rank = 0; rank < size_; ++rank) {
    const auto part = parts_.find(rank);
    if (part != parts_.end() && part->second.whole && part->second.text.ends_with('\n')) {
      result.records[rank] = std::move(part->second.text);
    } else {
      result.missing[rank] = rank == 0 ? "it is gone" : whyMissing(rank);
    }
  }
  parts_.clear();
  return result;
}

}  // namespace pushrod::orchestrator
