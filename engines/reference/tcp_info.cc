// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/tcp_info.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace pushrod::engines::reference {

namespace json = boost::json;

namespace {

Status invalid(std::string_view what, const std::string& text) {
  return {Code::kInvalidArgument, "Invalid " + std::string(what) + " for TcpEngine: " + text};
}

/// The texts of a Python call with wrong keyword arguments.
Status checkKeys(std::string_view what,
                 const json::object& info,
                 std::initializer_list<std::string_view> required,
                 std::initializer_list<std::string_view> optional) {
  const std::string call = what == "init_info" ? "TcpInitInfo" : "TcpUpdateInfo";
  for (const auto& entry : info) {
    const std::string_view key(entry.key().data(), entry.key().size());
    const auto known = [&](const auto& list) {
      return std::find(list.begin(), list.end(), key) != list.end();
    };
    if (!known(required) && !known(optional)) {
      return invalid(
          what, call + ".__init__() got an unexpected keyword argument '" + std::string(key) + "'");
    }
  }
  std::string missing;
  int count = 0;
  for (const std::string_view key : required) {
    if (!info.contains({key.data(), key.size()})) {
      missing += (count == 0 ? "'" : ", '") + std::string(key) + "'";
      ++count;
    }
  }
  if (count > 0) {
    return invalid(what,
                   call + ".__init__() missing " + std::to_string(count) +
                       " required positional argument" + (count == 1 ? "" : "s") + ": " + missing);
  }
  return {};
}

std::optional<std::int64_t> integer(const json::value* value) {
  if (value == nullptr || !value->is_int64()) {
    return std::nullopt;
  }
  return value->get_int64();
}

std::optional<std::string> text(const json::value* value) {
  if (value == nullptr || !value->is_string()) {
    return std::nullopt;
  }
  return std::string(value->get_string().data(), value->get_string().size());
}

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
    return invalid("init_info", "sources must be a list that is not empty");
  }
  std::vector<TcpSource> sources;
  for (const json::value& entry : value.get_array()) {
    if (!entry.is_object() || entry.get_object().size() != 3) {
      return invalid("init_info", "a source must have src, address and port, nothing else");
    }
    const json::object& object = entry.get_object();
    const auto src = integer(object.if_contains("src"));
    const auto address = text(object.if_contains("address"));
    const auto port = integer(object.if_contains("port"));
    const auto expected = static_cast<std::int64_t>(sources.size());
    if (!src || !address || address->empty() || !port || *port < 1 || *port > 65535) {
      return invalid("init_info", "a source must have an integer src, an address and a port");
    }
    if (*src != expected) {
      return invalid("init_info", "sources must be listed by ascending src, from 0");
    }
    sources.push_back({static_cast<int>(*src), *address, static_cast<std::uint16_t>(*port)});
  }
  return sources;
}

Result<Shape> parseShape(const json::value& value) {
  if (!value.is_array()) {
    return invalid("update_info", "a shape must be a list of integers");
  }
  Shape shape;
  for (const json::value& extent : value.get_array()) {
    const auto number = integer(&extent);
    if (!number || *number < 0) {
      return invalid("update_info", "a shape must be a list of integers that are not negative");
    }
    shape.push_back(*number);
  }
  if (!elementCount(shape)) {
    return invalid("update_info", "shape " + shapeText(shape) + " has too many elements");
  }
  return shape;
}

/// Most elements one tensor may announce: beyond it the sums of the chunk rule could overflow.
constexpr std::int64_t kMostElements = std::int64_t{1} << 48U;
constexpr std::int64_t kMostBuffer = std::int64_t{1} << 48U;

Result<TensorSpec> parseTensor(const json::value& name,
                               const json::value& dtype,
                               const json::value& shape) {
  const auto nameText = text(&name);
  const auto dtypeText = text(&dtype);
  if (!nameText || !dtypeText) {
    return invalid("update_info", "names and dtype_names must be lists of strings");
  }
  const auto known = dtypeFromName(*dtypeText);
  if (!known) {
    return Status(Code::kInvalidArgument, "module 'torch' has no attribute '" + *dtypeText + "'");
  }
  auto parsed = parseShape(shape);
  if (!parsed.ok()) {
    return parsed.error();
  }
  if (*elementCount(*parsed) > kMostElements) {
    return invalid("update_info", "shape " + shapeText(*parsed) + " has too many elements");
  }
  return TensorSpec{*nameText, *known, std::move(*parsed), 0};
}

}  // namespace

Result<TcpInit> TcpInit::parse(const json::value& info) {
  if (!info.is_object()) {
    return invalid("init_info", "argument after ** must be a mapping");
  }
  const json::object& object = info.get_object();
  Status keys = checkKeys(
      "init_info",
      object,
      {"protocol", "sources", "rank_offset", "world_size", "channel", "packed_buffer_size_bytes"},
      {"packed_num_buffers"});
  if (!keys.ok()) {
    return keys;
  }
  if (integer(object.if_contains("protocol")) != 1) {
    return invalid("init_info", "protocol must be 1");
  }
  auto sources = parseSources(object.at("sources"));
  if (!sources.ok()) {
    return sources.error();
  }
  const auto offset = integer(object.if_contains("rank_offset"));
  const auto world = integer(object.if_contains("world_size"));
  const auto buffer = integer(object.if_contains("packed_buffer_size_bytes"));
  const auto channel = text(object.if_contains("channel"));
  const json::value* buffers = object.if_contains("packed_num_buffers");
  TcpInit init;
  if (!offset || !world || *world < 1) {
    return invalid("init_info", "rank_offset and world_size must be integers");
  }
  if (!buffer || *buffer < 1 || *buffer > kMostBuffer ||
      (buffers != nullptr && integer(buffers).value_or(0) < 1)) {
    return invalid("init_info", "the packed buffer settings must be positive integers");
  }
  if (!channel || !parseChannel(*channel, init.channel)) {
    return invalid("init_info", "channel must be 32 lower-case hex digits");
  }
  init.sources = std::move(*sources);
  init.rankOffset = *offset;
  init.worldSize = *world;
  init.bufferBytes = static_cast<std::uint64_t>(*buffer);
  return init;
}

Result<TcpUpdate> TcpUpdate::parse(const json::value& info) {
  if (!info.is_object()) {
    return invalid("update_info",
                   std::string("argument after ** must be a mapping, not ") +
                       (info.is_array() ? "list" : "str"));
  }
  const json::object& object = info.get_object();
  Status keys = checkKeys("update_info", object, {"names", "dtype_names", "shapes"}, {"src"});
  if (!keys.ok()) {
    return keys;
  }
  for (const char* key : {"names", "dtype_names", "shapes"}) {
    if (!object.at(key).is_array()) {
      return invalid("update_info", std::string(key) + " must be a list");
    }
  }
  const json::array& names = object.at("names").get_array();
  for (const char* key : {"dtype_names", "shapes"}) {
    const std::size_t size = object.at(key).get_array().size();
    if (size != names.size()) {
      return Status(Code::kInvalidArgument,
                    "`" + std::string(key) + "` should be of the same size as `names`: got " +
                        std::to_string(size) + " and " + std::to_string(names.size()));
    }
  }
  TcpUpdate update;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto tensor = parseTensor(
        names[i], object.at("dtype_names").get_array()[i], object.at("shapes").get_array()[i]);
    if (!tensor.ok()) {
      return tensor.error();
    }
    update.tensors.push_back(std::move(*tensor));
  }
  if (const json::value* src = object.if_contains("src"); src != nullptr) {
    const auto number = integer(src);
    if (!number || *number < 0 || *number > 65535) {
      return invalid("update_info", "src must be the number of a source");
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

}  // namespace pushrod::engines::reference
