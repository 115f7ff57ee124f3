// SPDX-License-Identifier: Apache-2.0
#include "ranks/wire.h"

#include <algorithm>

namespace pushrod::ranks {

std::string_view cut(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) {
    return text;
  }
  constexpr unsigned kContinuationMask = 0xC0;
  constexpr unsigned kContinuation = 0x80;
  while (limit > 0 &&
         (static_cast<unsigned char>(text[limit]) & kContinuationMask) == kContinuation) {
    --limit;
  }
  return text.substr(0, limit);
}

void WireWriter::integer(std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i) {
    bytes_.push_back(static_cast<char>(value & 0xFFU));
    value >>= 8U;
  }
}

void WireWriter::text(std::string_view value, std::size_t limit) {
  const std::string_view kept = cut(value, limit);
  u32(static_cast<std::uint32_t>(kept.size()));
  bytes_.append(kept);
}

void WireWriter::key(const VoteKey& key) {
  u64(key.epoch);
  u32(key.attempt);
  u8(static_cast<std::uint8_t>(key.phase));
  u32(key.step);
}

void WireWriter::status(const Status& status) {
  u8(static_cast<std::uint8_t>(status.code()));
  if (status.ok()) {
    return;
  }
  u8(static_cast<std::uint8_t>(status.outcome()));
  i32(status.origin().rank);
  u8(static_cast<std::uint8_t>(status.origin().phase));
  u64(status.origin().epoch);
  i32(status.origin().attempt);
  text(status.origin().engine, kMaxEngineName);
  text(status.message(), kMaxMessage);
}

void WireWriter::verdict(const Verdict& verdict) {
  status(verdict.first);
  u8(static_cast<std::uint8_t>(verdict.decision));
  u8(verdict.digestsEqual ? 1 : 0);
  i32(verdict.differingRank);
  u8(verdict.stopped ? 1 : 0);
  i32(verdict.failingCount);
  const std::size_t named = std::min(verdict.failing.size(), kMostFailing);
  u8(static_cast<std::uint8_t>(named));
  for (std::size_t i = 0; i < named; ++i) {
    i32(verdict.failing[i]);
  }
}

std::uint64_t WireReader::integer(std::size_t width) {
  if (!good_ || bytes_.size() < width) {
    good_ = false;
    return 0;
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes_[i])} << (8 * i);
  }
  bytes_.remove_prefix(width);
  return value;
}

std::uint8_t WireReader::bounded(std::uint8_t last) {
  const std::uint8_t value = u8();
  if (value > last) {
    good_ = false;
    return 0;
  }
  return value;
}

std::string WireReader::text(std::size_t limit) {
  const std::size_t size = u32();
  if (!good_ || size > limit || size > bytes_.size()) {
    good_ = false;
    return {};
  }
  std::string value(bytes_.substr(0, size));
  bytes_.remove_prefix(size);
  return value;
}

VoteKey WireReader::key() {
  VoteKey key;
  key.epoch = u64();
  key.attempt = u32();
  key.phase = static_cast<Phase>(bounded(static_cast<std::uint8_t>(kPhaseCount - 1)));
  key.step = u32();
  return key;
}

Status WireReader::status() {
  const auto code = static_cast<Code>(bounded(static_cast<std::uint8_t>(Code::kInternal)));
  if (code == Code::kOk) {
    return Status();
  }
  const auto outcome = static_cast<Outcome>(bounded(static_cast<std::uint8_t>(Outcome::kUnknown)));
  Origin origin;
  origin.rank = i32();
  origin.phase = static_cast<Phase>(bounded(static_cast<std::uint8_t>(kPhaseCount - 1)));
  origin.epoch = u64();
  origin.attempt = i32();
  origin.engine = text(kMaxEngineName);
  std::string message = text(kMaxMessage);
  return Status(code, std::move(message), outcome).at(origin);
}

Verdict WireReader::verdict() {
  Verdict verdict;
  verdict.first = status();
  verdict.decision = static_cast<Decision>(bounded(static_cast<std::uint8_t>(Decision::kFail)));
  verdict.digestsEqual = bounded(1) == 1;
  verdict.differingRank = i32();
  verdict.stopped = bounded(1) == 1;
  verdict.failingCount = i32();
  const std::size_t named = bounded(kMostFailing);
  for (std::size_t i = 0; i < named; ++i) {
    verdict.failing.push_back(i32());
  }
  return verdict;
}

}  // namespace pushrod::ranks
