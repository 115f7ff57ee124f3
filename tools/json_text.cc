// SPDX-License-Identifier: Apache-2.0
#include "tools/json_text.h"

#include <algorithm>

#include <boost/json.hpp>

namespace pushrod::tools {
namespace {

namespace json = boost::json;

bool isPlain(const json::value& value) {
  return !value.is_object() && !value.is_array();
}

void append(std::string& out, const json::value& value, std::size_t indent);

void appendObject(std::string& out, const json::object& object, std::size_t indent) {
  const char* separator = "{\n";
  for (const auto& member : object) {
    out += separator + std::string(indent + 2, ' ') + json::serialize(json::value(member.key())) +
           ": ";
    append(out, member.value(), indent + 2);
    separator = ",\n";
  }
  out += object.empty() ? "{}" : "\n" + std::string(indent, ' ') + "}";
}

void appendArray(std::string& out, const json::array& array, std::size_t indent) {
  const bool flat = std::all_of(array.begin(), array.end(), isPlain);
  const std::string inner = flat ? "" : "\n" + std::string(indent + 2, ' ');
  std::string separator = "[";
  for (const json::value& item : array) {
    out += separator + inner;
    append(out, item, indent + 2);
    separator = flat ? ", " : ",";
  }
  out += array.empty() ? "[]" : flat ? "]" : "\n" + std::string(indent, ' ') + "]";
}

void append(std::string& out, const json::value& value, std::size_t indent) {
  if (value.is_object()) {
    appendObject(out, value.get_object(), indent);
  } else if (value.is_array()) {
    appendArray(out, value.get_array(), indent);
  } else {
    out += json::serialize(value);
  }
}

}  // namespace

std::optional<std::string> prettyJson(std::string_view text) {
  try {
    json::error_code error;
    const json::value value = json::parse({text.data(), text.size()}, error);
    if (error) {
      return std::nullopt;
    }
    std::string out;
    append(out, value, 0);
    return out;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace pushrod::tools
