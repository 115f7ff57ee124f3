// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <boost/json/value.hpp>

#include "engines/reference/exchange.h"

namespace pushrod::engines::reference {

/// A body as a route without validation reads it: any content type, and JSON that does not parse is
/// a 400 with the text `otherwise`. Nullopt: answered already.
[[nodiscard]] std::optional<boost::json::value> readLooseBody(
    Exchange& exchange, const std::string& otherwise = "Invalid JSON format");

/// A body as validated routes read it: null without the JSON content type or without bytes, a 400
/// where JSON does not parse. Nullopt: answered already.
[[nodiscard]] std::optional<boost::json::value> readTypedBody(Exchange& exchange);

/// A query value as a boolean; nullopt: answered 400.
[[nodiscard]] std::optional<bool> readQueryFlag(Exchange& exchange,
                                                const std::string& key,
                                                bool absent);

/// A JSON string as std::string; nullopt for anything else.
[[nodiscard]] std::optional<std::string> asString(const boost::json::value* value);

/// A value as the request validation shows it; "None" for none.
[[nodiscard]] std::string shownInput(const boost::json::value* value);

/// The Python error for a body that is no mapping.
[[nodiscard]] std::string noMapping(const boost::json::value& value);

}  // namespace pushrod::engines::reference
