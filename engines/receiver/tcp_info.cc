// SPDX-License-Identifier: Apache-2.0
#include "engines/receiver/tcp_info.h"

#include <string_view>
#include <utility>

#include "engines/receiver/info_json.h"

namespace pushrod::engines::receiver {

namespace json = boost::json;

namespace {

constexpr InfoKind kInit{"init_info", "TcpEngine", "TcpInitInfo"};
constexpr InfoKind kUpdate{"update_info", "TcpEngine", "TcpUpdateInfo"};

bool parseChannel(const std::string& hex, std::array<std::uint8_t, 16>& channel) {
  if (hex.size() != channel.size() * 2) {
    return false;
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (std::size_t i = 0; i < channel.size(); ++i) {
    const std::size_t high = kDigits.find(hex[2 * i]);
    const std::size_t low = kDigits.find(hex[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) {
      return false;
    }
    channel.at(i) = static_cast<std::uint8_t>(high * 16 + low);
  }
  return true;
}

Result<std::vector<TcpSource>> parseSources(const json::value& value) {
  if (!value.is_array() || value.get_array().empty()) {
    return invalidInfo(kInit, "sources must be a list that is not empty");
  }
  std::vector<TcpSource> sources;
  for (const json::value& entry : value.get_array()) {
    if (!entry.is_object() || entry.get_object().size() != 3) {
      return invalidInfo(kInit, "a source must have src, address and port, nothing else");
    }
    const json::object& object = entry.get_object();
    const auto src = integerOf(object.if_contains("src"));
    const auto address = textOf(object.if_contains("address"));
    const auto port = integerOf(object.if_contains("port"));
    const auto expected = static_cast<std::int64_t>(sources.size());
    if (!src || !address || address->empty() || !port || *port < 1 || *port > 65535) {
      return invalidInfo(kInit, "a source must have an integer src, an address and a port");
    }
    if (*src != expected) {
      return invalidInfo(kInit, "sources must be listed by ascending src, from 0");
    }
    sources.push_back({static_cast<int>(*src), *address, static_cast<std::uint16_t>(*port)});
  }
  return sources;
}

constexpr std::int64_t kMostBuffer = std::int64_t{1} << 48U;

}  // namespace

Result<TcpInit> TcpInit::parse(const json::value& info) {
  Status keys = checkKeys(
      kInit,
      info,
      {"protocol", "sources", "rank_offset", "world_size", "channel", "packed_buffer_size_bytes"},
      {"packed_num_buffers"});
  if (!keys.ok()) {
    return keys;
  }
  const json::object& object = info.get_object();
  if (integerOf(object.if_contains("protocol")) != 1) {
    return invalidInfo(kInit, "protocol must be 1");
  }
  auto sources = parseSources(object.at("sources"));
  if (!sources.ok()) {
    return sources.error();
  }
  const auto offset = integerOf(object.if_contains("rank_offset"));
  const auto world = integerOf(object.if_contains("world_size"));
  const auto buffer = integerOf(object.if_contains("packed_buffer_size_bytes"));
  const auto channel = textOf(object.if_contains("channel"));
  const json::value* buffers = object.if_contains("packed_num_buffers");
  TcpInit init;
  if (!offset || !world || *world < 1) {
    return invalidInfo(kInit, "rank_offset and world_size must be integers");
  }
  if (!buffer || *buffer < 1 || *buffer > kMostBuffer ||
      (buffers != nullptr && integerOf(buffers).value_or(0) < 1)) {
    return invalidInfo(kInit, "the packed buffer settings must be positive integers");
  }
  if (!channel || !parseChannel(*channel, init.channel)) {
    return invalidInfo(kInit, "channel must be 32 lower-case hex digits");
  }
  init.sources = std::move(*sources);
  init.rankOffset = *offset;
  init.worldSize = *world;
  init.bufferBytes = static_cast<std::uint64_t>(*buffer);
  return init;
}

Result<TcpUpdate> TcpUpdate::parse(const json::value& info) {
  if (Status keys = checkKeys(kUpdate, info, {"names", "dtype_names", "shapes"}, {"src"});
      !keys.ok()) {
    return keys;
  }
  const json::object& object = info.get_object();
  auto tensors = parseTensors(kUpdate, object);
  if (!tensors.ok()) {
    return tensors.error();
  }
  TcpUpdate update;
  update.tensors = std::move(*tensors);
  if (const json::value* src = object.if_contains("src"); src != nullptr) {
    const auto number = integerOf(src);
    if (!number || *number < 0 || *number > 65535) {
      return invalidInfo(kUpdate, "src must be the number of a source");
    }
    update.src = static_cast<int>(*number);
  }
  return update;
}

std::vector<ChunkPlan> cutChunks(const std::vector<TensorSpec>& tensors,
                                 std::uint64_t bufferBytes) {
  std::vector<ChunkPlan> plans;
  ChunkPlan open;
  for (const TensorSpec& tensor : tensors) {
    ++open.count;
    open.bytes += tensor.bytes();
    if (open.bytes > bufferBytes) {
      plans.push_back(open);
      open = ChunkPlan{open.first + open.count, 0, 0};
    }
  }
  if (open.bytes > 0) {
    plans.push_back(open);
  }
  return plans;
}

}  // namespace pushrod::engines::receiver
