// SPDX-License-Identifier: Apache-2.0
#include "ranks/link_frame.h"

#include "ranks/store_frame.h"
#include "ranks/wire.h"

namespace pushrod::ranks {

namespace {

constexpr std::size_t kMaxToken = 64;

}  // namespace

std::string encode(const LinkFrame& frame) {
  WireWriter writer;
  writer.u8(static_cast<std::uint8_t>(frame.kind));
  writer.text(frame.token, kMaxToken);
  writer.i32(frame.rank);
  writer.u64(frame.epoch);
  writer.key(frame.key);
  writer.status(frame.status);
  writer.verdict(frame.verdict);
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
  if (!reader.finished() || kind > static_cast<std::uint8_t>(LinkKind::kVerdict)) {
    return Status(Code::kUnavailable, "a message of the rank link is malformed");
  }
  frame.kind = static_cast<LinkKind>(kind);
  return frame;
}

}  // namespace pushrod::ranks
