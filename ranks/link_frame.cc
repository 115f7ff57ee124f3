// SPDX-License-Identifier: Apache-2.0
#include "ranks/link_frame.h"

#include <algorithm>

#include "common/check.h"
#include "ranks/store_frame.h"
#include "ranks/wire.h"

namespace pushrod::ranks {

namespace {

constexpr std::size_t kMaxToken = 64;
// About 35 years: times of a rank that is broken must not overflow ours.
constexpr std::uint64_t kMaxMilliseconds = std::uint64_t{1} << 40U;

std::uint64_t milliseconds(Duration duration) {
  return static_cast<std::uint64_t>(std::max<Duration::rep>(duration.count(), 0));
}

Duration readDuration(WireReader& reader) {
  return Duration{static_cast<Duration::rep>(std::min(reader.u64(), kMaxMilliseconds))};
}

RankPosition readPosition(WireReader& reader) {
  RankPosition position;
  position.rank = reader.i32();
  position.key = reader.key();
  position.age = readDuration(reader);
  position.silence = readDuration(reader);
  position.progress.stage = reader.u8();
  position.progress.begun = reader.u32();
  position.progress.returned = reader.u32();
  position.progress.kibPerSecond = reader.u32();
  position.still = readDuration(reader);
  return position;
}

}  // namespace

std::string encode(const LinkFrame& frame) {
  PUSHROD_CHECK(frame.positions.size() <= kMaxPositions);
  PUSHROD_CHECK(frame.part.bytes.size() <= kMaxRecordPart);
  WireWriter writer;
  writer.u8(static_cast<std::uint8_t>(frame.kind));
  writer.text(frame.token, kMaxToken);
  writer.i32(frame.rank);
  writer.u64(frame.epoch);
  writer.key(frame.key);
  writer.status(frame.status);
  writer.verdict(frame.verdict);
  writer.u8(static_cast<std::uint8_t>(frame.positions.size()));
  for (const RankPosition& position : frame.positions) {
    writer.i32(position.rank);
    writer.key(position.key);
    writer.u64(milliseconds(position.age));
    writer.u64(milliseconds(position.silence));
    writer.u8(position.progress.stage);
    writer.u32(position.progress.begun);
    writer.u32(position.progress.returned);
    writer.u32(position.progress.kibPerSecond);
    writer.u64(milliseconds(position.still));
  }
  writer.u32(frame.part.number);
  writer.u8(frame.part.last ? 1 : 0);
  writer.text(frame.part.bytes, kMaxRecordPart);
  return framed(writer.bytes());
}

Result<LinkFrame> decodeLinkFrame(std::string_view body) {
  WireReader reader(body);
  LinkFrame frame;
  const std::uint8_t kind = reader.u8();
  frame.token = reader.text(kMaxToken);
  frame.rank = reader.i32();
  frame.epoch = reader.u64();
  frame.key = reader.key();
  frame.status = reader.status();
  frame.verdict = reader.verdict();
  const std::size_t count = reader.u8();
  for (std::size_t i = 0; i < count && reader.good(); ++i) {
    frame.positions.push_back(readPosition(reader));
  }
  frame.part.number = reader.u32();
  const std::uint8_t last = reader.u8();
  frame.part.bytes = reader.text(kMaxRecordPart);
  if (!reader.finished() || count > kMaxPositions || last > 1 ||
      kind > static_cast<std::uint8_t>(LinkKind::kHalt)) {
    return Status(Code::kUnavailable, "a message of the rank link is malformed");
  }
  frame.kind = static_cast<LinkKind>(kind);
  frame.part.rank = frame.rank;
  frame.part.epoch = frame.epoch;
  frame.part.last = last == 1;
  return frame;
}

}  // namespace pushrod::ranks
