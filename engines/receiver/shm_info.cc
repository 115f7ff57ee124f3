// SPDX-License-Identifier: Apache-2.0
#include "engines/receiver/shm_info.h"

#include <optional>
#include <string_view>
#include <utility>

#include "engines/receiver/info_json.h"

namespace pushrod::engines::receiver {

namespace json = boost::json;

namespace {

constexpr InfoKind kInit{"init_info", "ShmEngine", "ShmInitInfo"};
constexpr InfoKind kUpdate{"update_info", "ShmEngine", "ShmUpdateInfo"};
constexpr std::string_view kSegmentPrefix = "/pushrod.";
constexpr std::size_t kLongestName = 255;
/// Largest place in a segment: sums of two such stay far from the type's end.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 56U;

std::optional<std::uint64_t> sizeOf(const json::value* value) {
  const auto number = integerOf(value);
  if (!number || *number < 0 || *number > kMostBytes) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(*number);
}

Result<ShmSegment> parseSegment(const std::string& host, const json::value& value) {
  const std::string what = "segment of host " + host;
  if (!value.is_object() || value.get_object().size() != 3) {
    return invalidInfo(kUpdate, what + " must have name, offset and bytes, nothing else");
  }
  const json::object& object = value.get_object();
  const auto name = textOf(object.if_contains("name"));
  const auto offset = sizeOf(object.if_contains("offset"));
  const auto bytes = sizeOf(object.if_contains("bytes"));
  if (!name || !offset || !bytes) {
    return invalidInfo(kUpdate, what + " must have a name and sizes that are not negative");
  }
  const bool sound = name->starts_with(kSegmentPrefix) && name->size() <= kLongestName &&
                     name->find('/', 1) == std::string::npos &&
                     name->find('\0') == std::string::npos;
  if (!sound) {
    return invalidInfo(kUpdate, what + " has a name that is none of Pushrod's");
  }
  return ShmSegment{*name, *offset, *bytes};
}

/// The bytes of all tensors, each as large as its dtype and shape make it.
Result<std::uint64_t> checkSizes(const std::vector<TensorSpec>& tensors, const json::value& sizes) {
  if (!sizes.is_array() || sizes.get_array().size() != tensors.size()) {
    return invalidInfo(kUpdate, "tensor_sizes must be a list as long as names");
  }
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto size = sizeOf(&sizes.get_array()[i]);
    const std::uint64_t wanted = tensors[i].bytes();
    if (!size || *size != wanted) {
      return invalidInfo(
          kUpdate,
          "tensor_sizes of " + tensors[i].describe() + " is not " + std::to_string(wanted));
    }
    total += wanted;
    if (total > static_cast<std::uint64_t>(kMostBytes)) {
      return invalidInfo(kUpdate, "the tensors of a chunk have too many bytes");
    }
  }
  return total;
}

}  // namespace

Status checkShmInit(const json::value& info) {
  if (Status keys = checkKeys(kInit, info, {"protocol", "packed"}, {}); !keys.ok()) {
    return keys;
  }
  const json::object& object = info.get_object();
  if (integerOf(object.if_contains("protocol")) != 1) {
    return invalidInfo(kInit, "protocol must be 1");
  }
  const json::value& packed = object.at("packed");
  if (!packed.is_bool() || !packed.get_bool()) {
    return invalidInfo(kInit, "packed must be true");
  }
  return {};
}

Result<ShmUpdate> ShmUpdate::parse(const json::value& info) {
  if (Status keys = checkKeys(
          kUpdate, info, {"names", "dtype_names", "shapes", "tensor_sizes", "segments"}, {});
      !keys.ok()) {
    return keys;
  }
  const json::object& object = info.get_object();
  auto tensors = parseTensors(kUpdate, object);
  if (!tensors.ok()) {
    return tensors.error();
  }
  const auto bytes = checkSizes(*tensors, object.at("tensor_sizes"));
  if (!bytes.ok()) {
    return bytes.error();
  }
  if (!object.at("segments").is_object() || object.at("segments").get_object().empty()) {
    return invalidInfo(kUpdate, "segments must be a mapping that is not empty");
  }
  ShmUpdate update{std::move(*tensors), *bytes, {}};
  for (const auto& entry : object.at("segments").get_object()) {
    const std::string host(entry.key().data(), entry.key().size());
    auto segment = parseSegment(host, entry.value());
    if (!segment.ok()) {
      return segment.error();
    }
    if (segment->bytes != update.bytes) {
      return invalidInfo(kUpdate,
                         "segment of host " + host + " has " + std::to_string(segment->bytes) +
                             " bytes, the tensors have " + std::to_string(update.bytes));
    }
    update.segments.emplace(host, std::move(*segment));
  }
  return update;
}

}  // namespace pushrod::engines::receiver
