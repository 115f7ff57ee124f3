// SPDX-License-Identifier: Apache-2.0
#include "ranks/store_frame.h"

#include "ranks/store.h"
#include "ranks/wire.h"

namespace pushrod::ranks {

namespace {

Status malformed() {
  return Status(Code::kUnavailable, "a message of the ranks' TCP store is malformed");
}

}  // namespace

std::string framed(std::string_view body) {
  WireWriter writer;
  writer.text(body, body.size());
  return writer.take();
}

Result<std::optional<std::string>> takeFrame(std::string& input, std::size_t limit) {
  if (input.size() < kFrameHeader) {
    return std::optional<std::string>();
  }
  const std::size_t size = WireReader(input).u32();
  if (size > limit) {
    return Status(Code::kUnavailable,
                  "a message of " + std::to_string(size) + " bytes is longer than allowed");
  }
  if (input.size() < kFrameHeader + size) {
    return std::optional<std::string>();
  }
  std::string body = input.substr(kFrameHeader, size);
  input.erase(0, kFrameHeader + size);
  return std::optional<std::string>(std::move(body));
}

std::string encodeRequest(const StoreRequest& request) {
  WireWriter writer;
  writer.u8(static_cast<std::uint8_t>(request.op));
  writer.u32(static_cast<std::uint32_t>(request.keys.size()));
  for (const std::string& key : request.keys) {
    writer.text(key, Store::kMaxKey);
  }
  writer.text(request.value, Store::kMaxValue);
  return writer.take();
}

Result<StoreRequest> decodeRequest(std::string_view body) {
  WireReader reader(body);
  StoreRequest request;
  const std::uint8_t op = reader.u8();
  const std::uint32_t count = reader.u32();
  if (op > static_cast<std::uint8_t>(StoreOp::kErase) || count > kMaxStoreKeys) {
    return malformed();
  }
  request.op = static_cast<StoreOp>(op);
  for (std::uint32_t i = 0; i < count && reader.good(); ++i) {
    request.keys.push_back(reader.text(Store::kMaxKey));
  }
  request.value = reader.text(Store::kMaxValue);
  const bool oneKey = request.op != StoreOp::kSet || request.keys.size() == 1;
  if (!reader.finished() || !oneKey) {
    return malformed();
  }
  return request;
}

std::string encodeReply(const std::vector<std::optional<std::string>>& values) {
  WireWriter writer;
  writer.u32(static_cast<std::uint32_t>(values.size()));
  for (const auto& value : values) {
    writer.u8(value ? 1 : 0);
    if (value) {
      writer.text(*value, Store::kMaxValue);
    }
  }
  return writer.take();
}

Result<std::vector<std::optional<std::string>>> decodeReply(std::string_view body) {
  WireReader reader(body);
  const std::uint32_t count = reader.u32();
  if (count > kMaxStoreKeys) {
    return malformed();
  }
  std::vector<std::optional<std::string>> values;
  for (std::uint32_t i = 0; i < count && reader.good(); ++i) {
    values.emplace_back(reader.u8() == 0 ? std::nullopt
                                         : std::optional(reader.text(Store::kMaxValue)));
  }
  if (!reader.finished()) {
    return malformed();
  }
  return values;
}

}  // namespace pushrod::ranks
