// SPDX-License-Identifier: Apache-2.0
// Any bytes as what ranks say to each other: vote records, link frames, the TCP store's requests
// and replies. What is taken must survive being written and read again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "common/check.h"
#include "ranks/link_frame.h"
#include "ranks/store_frame.h"
#include "ranks/vote_record.h"

namespace {

using namespace pushrod;
using namespace pushrod::ranks;

void voteRecord(std::string_view text) {
  RecordBytes bytes{};
  std::memcpy(bytes.data(), text.data(), std::min(text.size(), bytes.size()));
  const auto record = decode(bytes);
  if (!record) {
    return;
  }
  RecordBytes written{};
  encode(*record, written);
  const auto again = decode(written);
  PUSHROD_CHECK(again.ok() && again->key == record->key && again->kind == record->kind);
  PUSHROD_CHECK(again->verdict.first == record->verdict.first);
  PUSHROD_CHECK(again->digests == record->digests && again->length == record->length);
  VoteRecord all = ballotRecord(record->key, Ballot{}, 0);
  combine(all, *record);
}

void linkFrame(std::string_view text) {
  const auto frame = decodeLinkFrame(text);
  if (!frame) {
    PUSHROD_CHECK(!frame.status().message().empty());
    return;
  }
  std::string written = encode(*frame);
  const auto body = takeFrame(written, kMaxLinkFrame);
  PUSHROD_CHECK(body.ok() && body->has_value() && written.empty());
  const auto again = decodeLinkFrame(**body);
  PUSHROD_CHECK(again.ok() && again->kind == frame->kind && again->rank == frame->rank);
  PUSHROD_CHECK(again->status == frame->status && again->key == frame->key);
}

void storeFrames(std::string_view text) {
  if (const auto request = decodeRequest(text)) {
    const auto again = decodeRequest(encodeRequest(*request));
    PUSHROD_CHECK(again.ok() && again->keys == request->keys && again->value == request->value);
  }
  if (const auto reply = decodeReply(text)) {
    const auto again = decodeReply(encodeReply(*reply));
    PUSHROD_CHECK(again.ok() && *again == *reply);
  }
  std::string stream(text);
  for (std::size_t left = stream.size() + 1; stream.size() < left;) {
    left = stream.size();
    const auto frame = takeFrame(stream, kMaxLinkFrame);
    if (!frame.ok() || !frame->has_value()) {
      return;
    }
    PUSHROD_CHECK((*frame)->size() <= kMaxLinkFrame);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  voteRecord(text);
  linkFrame(text);
  storeFrames(text);
  return 0;
}
