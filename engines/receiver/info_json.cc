// SPDX-License-Identifier: Apache-2.0
#include "engines/receiver/info_json.h"

#include <algorithm>
#include <utility>

namespace pushrod::engines::receiver {

namespace json = boost::json;

namespace {

Result<Shape> parseShape(const InfoKind& kind, const json::value& value) {
  if (!value.is_array()) {
    return invalidInfo(kind, "a shape must be a list of integers");
  }
  Shape shape;
  for (const json::value& extent : value.get_array()) {
    const auto number = integerOf(&extent);
    if (!number || *number < 0) {
      return invalidInfo(kind, "a shape must be a list of integers that are not negative");
    }
    shape.push_back(*number);
  }
  if (!elementCount(shape)) {
    return invalidInfo(kind, "shape " + shapeText(shape) + " has too many elements");
  }
  return shape;
}

/// Most elements one tensor may announce: beyond it the sums over a chunk could overflow.
constexpr std::int64_t kMostElements = std::int64_t{1} << 48U;

Result<TensorSpec> parseTensor(const InfoKind& kind,
                               const json::value& name,
                               const json::value& dtype,
                               const json::value& shape) {
  const auto nameText = textOf(&name);
  const auto dtypeText = textOf(&dtype);
  if (!nameText || !dtypeText) {
    return invalidInfo(kind, "names and dtype_names must be lists of strings");
  }
  const auto known = dtypeFromName(*dtypeText);
  if (!known) {
    return Status(Code::kInvalidArgument, "module 'torch' has no attribute '" + *dtypeText + "'");
  }
  auto parsed = parseShape(kind, shape);
  if (!parsed.ok()) {
    return parsed.error();
  }
  if (*elementCount(*parsed) > kMostElements) {
    return invalidInfo(kind, "shape " + shapeText(*parsed) + " has too many elements");
  }
  return TensorSpec{*nameText, *known, std::move(*parsed), 0};
}

}  // namespace

Status invalidInfo(const InfoKind& kind, const std::string& text) {
  return {Code::kInvalidArgument,
          "Invalid " + std::string(kind.what) + " for " + std::string(kind.engine) + ": " + text};
}

Status checkKeys(const InfoKind& kind,
                 const json::value& info,
                 std::initializer_list<std::string_view> required,
                 std::initializer_list<std::string_view> optional) {
  if (!info.is_object()) {
    return invalidInfo(kind,
                       std::string("argument after ** must be a mapping, not ") +
                           (info.is_array() ? "list" : "str"));
  }
  const json::object& object = info.get_object();
  const std::string call(kind.call);
  for (const auto& entry : object) {
    const std::string_view key(entry.key().data(), entry.key().size());
    const auto known = [&](const auto& list) {
      return std::find(list.begin(), list.end(), key) != list.end();
    };
    if (!known(required) && !known(optional)) {
      return invalidInfo(
          kind, call + ".__init__() got an unexpected keyword argument '" + std::string(key) + "'");
    }
  }
  std::string missing;
  int count = 0;
  for (const std::string_view key : required) {
    if (!object.contains({key.data(), key.size()})) {
      missing += (count == 0 ? "'" : ", '") + std::string(key) + "'";
      ++count;
    }
  }
  if (count > 0) {
    return invalidInfo(kind,
                       call + ".__init__() missing " + std::to_string(count) +
                           " required positional argument" + (count == 1 ? "" : "s") + ": " +
                           missing);
  }
  return {};
}

std::optional<std::int64_t> integerOf(const json::value* value) {
  if (value == nullptr || !value->is_int64()) {
    return std::nullopt;
  }
  return value->get_int64();
}

std::optional<std::string> textOf(const json::value* value) {
  if (value == nullptr || !value->is_string()) {
    return std::nullopt;
  }
  return std::string(value->get_string().data(), value->get_string().size());
}

Result<std::vector<TensorSpec>> parseTensors(const InfoKind& kind, const json::object& object) {
  for (const char* key : {"names", "dtype_names", "shapes"}) {
    if (!object.at(key).is_array()) {
      return invalidInfo(kind, std::string(key) + " must be a list");
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
  std::vector<TensorSpec> tensors;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto tensor = parseTensor(kind,
                              names[i],
                              object.at("dtype_names").get_array()[i],
                              object.at("shapes").get_array()[i]);
    if (!tensor.ok()) {
      return tensor.error();
    }
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

}  // namespace pushrod::engines::receiver
