// SPDX-License-Identifier: Apache-2.0
#include "config/environment.h"

#include <algorithm>
#include <cstdlib>

#include "config/fault.h"

namespace pushrod::config {

namespace {

constexpr std::size_t kLongestValue = std::size_t{16} << 10;

Status wrong(std::string text) {
  return {Code::kInvalidArgument, std::move(text)};
}

bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

EnvironmentLookup processEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

bool isVariableName(const std::string& name) {
  return !name.empty() && isLetter(name.front()) &&
         std::all_of(name.begin(), name.end(), [](char c) { return isLetter(c) || isDigit(c); });
}

Result<Replaced> replaceVariables(const std::string& text, const EnvironmentLookup& lookup) {
  Replaced result;
  std::size_t at = 0;
  while (at < text.size()) {
    if (text.compare(at, 3, "$${") == 0) {
      result.text += "${";
      at += 3;
      continue;
    }
    if (text.compare(at, 2, "${") != 0) {
      result.text += text[at++];
      continue;
    }
    const std::size_t end = text.find('}', at);
    const std::string name =
        end == std::string::npos ? std::string() : text.substr(at + 2, end - at - 2);
    if (!isVariableName(name)) {
      return wrong(
          quoted(text) +
          " has a ${ without a variable's name and }; write ${NAME}, or $${ for a plain ${");
    }
    const std::optional<std::string> value = lookup(name);
    if (!value) {
      return wrong("environment variable " + name + " is not set; set it or write the value out");
    }
    if (result.text.size() + value->size() > kLongestValue) {
      return wrong("environment variable " + name + " makes the value longer than " +
                   std::to_string(kLongestValue) + " bytes");
    }
    result.text += *value;
    result.changed = true;
    at = end + 1;
  }
  return result;
}

std::string escapeVariables(const std::string& text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "${") == 0) {
      escaped += '$';
    }
    escaped += text[i];
  }
  return escaped;
}

Result<std::string> readSecret(const std::string& envName) {
  if (!isVariableName(envName)) {
    return wrong(
        "a secret is given by the name of an environment variable (letters, digits and _)");
  }
  const std::optional<std::string> value = processEnvironment()(envName);
  if (!value || value->empty()) {
    return wrong("environment variable " + envName + ", named for a secret, is " +
                 (value ? "empty" : "not set") + "; set it to the secret");
  }
  if (value->size() > kLongestValue) {
    return wrong("the secret in environment variable " + envName + " is longer than " +
                 std::to_string(kLongestValue) + " bytes");
  }
  if (!std::all_of(value->begin(), value->end(), [](char c) { return c > ' ' && c < 0x7F; })) {
    return wrong("the secret in environment variable " + envName +
                 " has a space, a line end or a character outside ASCII; it cannot be sent");
  }
  return *value;
}

}  // namespace pushrod::config
