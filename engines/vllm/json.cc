// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/json.h"

#include <limits>

#include <boost/json/parse.hpp>

namespace pushrod::engines::vllm {

namespace json = boost::json;

std::optional<json::value> parseJson(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse({text.data(), text.size()}, error);
  if (error) {
    return std::nullopt;
  }
  return value;
}

const json::value* member(const json::value& value, std::string_view key) {
  const json::object* const object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains({key.data(), key.size()});
}

const json::value* member(const json::value& value,
                          std::string_view outer,
                          std::string_view inner) {
  const json::value* const found = member(value, outer);
  return found == nullptr ? nullptr : member(*found, inner);
}

std::optional<std::string> stringOf(const json::value* value) {
  const json::string* const text = value == nullptr ? nullptr : value->if_string();
  if (text == nullptr) {
    return std::nullopt;
  }
  return std::string(text->data(), text->size());
}

std::optional<int> intOf(const json::value* value) {
  const std::int64_t* const number = value == nullptr ? nullptr : value->if_int64();
  if (number == nullptr || *number < std::numeric_limits<int>::min() ||
      *number > std::numeric_limits<int>::max()) {
    return std::nullopt;
  }
  return static_cast<int>(*number);
}

std::optional<bool> boolOf(const json::value* value) {
  const bool* const flag = value == nullptr ? nullptr : value->if_bool();
  if (flag == nullptr) {
    return std::nullopt;
  }
  return *flag;
}

}  // namespace pushrod::engines::vllm
