// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <pushrod/result.h>

namespace pushrod::config {

/// Gives the value of a variable, nullopt when it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

/// The process's own environment. Not thread-safe against setenv.
[[nodiscard]] EnvironmentLookup processEnvironment();

struct Replaced {
  std::string text;
  bool changed = false;
};

/// `text` with each ${NAME} replaced by the variable's value; "$${" stands for a plain "${". Values
/// are not searched again. The failure's message says what is wrong with the replacement.
[[nodiscard]] Result<Replaced> replaceVariables(const std::string& text,
                                                const EnvironmentLookup& lookup);

/// The inverse for a plain text: replaceVariables(escapeVariables(x)) is x.
[[nodiscard]] std::string escapeVariables(const std::string& text);

/// Whether `name` may name a variable: a letter or "_", then letters, digits and "_".
[[nodiscard]] bool isVariableName(const std::string& name);

/// The secret in the variable `envName`: not empty, printable ASCII without spaces, since it goes
/// into a request header. Messages name the variable and never its value.
[[nodiscard]] Result<std::string> readSecret(const std::string& envName);

}  // namespace pushrod::config
