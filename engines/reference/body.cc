// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/body.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include <boost/json/serialize.hpp>
#include <boost/json/stream_parser.hpp>

namespace pushrod::engines::reference {

namespace json = boost::json;

namespace {

/// A parsed text, or how many bytes were good.
struct Parsed {
  std::optional<json::value> value;
  std::size_t good = 0;
};

Parsed parse(const std::string& text) {
  json::stream_parser parser;
  json::error_code error;
  Parsed parsed;
  parsed.good = parser.write(text.data(), text.size(), error);
  if (!error) {
    parser.finish(error);
  }
  if (!error) {
    parsed.value = parser.release();
  }
  return parsed;
}

}  // namespace

std::optional<json::value> readLooseBody(Exchange& exchange, const std::string& otherwise) {
  Parsed parsed = parse(exchange.request().body);
  if (!parsed.value) {
    exchange.badRequest(otherwise);
  }
  return std::move(parsed.value);
}

std::optional<json::value> readTypedBody(Exchange& exchange) {
  if (!exchange.hasJsonType() || exchange.request().body.empty()) {
    return json::value(nullptr);
  }
  Parsed parsed = parse(exchange.request().body);
  if (!parsed.value) {
    exchange.invalid({{"json_invalid",
                       "body." + std::to_string(parsed.good),
                       "JSON decode error",
                       "<dict of 0 items>",
                       "'error': 'Expecting value'"}});
  }
  return std::move(parsed.value);
}

std::optional<bool> readQueryFlag(Exchange& exchange, const std::string& key, bool absent) {
  const auto given = exchange.query(key);
  if (!given) {
    return absent;
  }
  auto text = given;
  std::transform(text->begin(), text->end(), text->begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  constexpr std::array<std::string_view, 6> kTrue = {"true", "1", "yes", "on", "y", "t"};
  constexpr std::array<std::string_view, 6> kFalse = {"false", "0", "no", "off", "n", "f"};
  if (std::find(kTrue.begin(), kTrue.end(), *text) != kTrue.end()) {
    return true;
  }
  if (std::find(kFalse.begin(), kFalse.end(), *text) != kFalse.end()) {
    return false;
  }
  exchange.invalid({{"bool_parsing",
                     "query." + key,
                     "Input should be a valid boolean, unable to interpret input",
                     *given}});
  return std::nullopt;
}

std::optional<std::string> asString(const json::value* value) {
  if (value == nullptr || !value->is_string()) {
    return std::nullopt;
  }
  return std::string(value->get_string().data(), value->get_string().size());
}

std::string shownInput(const json::value* value) {
  if (value == nullptr || value->is_null()) {
    return "None";
  }
  if (value->is_array()) {
    return "<list of " + std::to_string(value->get_array().size()) + " items>";
  }
  if (value->is_object()) {
    return "<dict of " + std::to_string(value->get_object().size()) + " items>";
  }
  if (value->is_bool()) {
    return value->get_bool() ? "True" : "False";
  }
  return asString(value).value_or(json::serialize(*value));
}

std::string noMapping(const json::value& value) {
  const std::string type = value.is_array()    ? "list"
                           : value.is_string() ? "str"
                           : value.is_null()   ? "NoneType"
                           : value.is_bool()   ? "bool"
                           : value.is_double() ? "float"
                                               : "int";
  return "'" + type + "' object has no attribute 'get'";
}

}  // namespace pushrod::engines::reference
