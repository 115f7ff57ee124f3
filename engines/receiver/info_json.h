// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include <pushrod/result.h>
#include <pushrod/tensor.h>

namespace pushrod::engines::receiver {

/// Which JSON object of which backend is read, for texts as Python's.
struct InfoKind {
  std::string_view what;    ///< "init_info"
  std::string_view engine;  ///< "TcpEngine"
  std::string_view call;    ///< "TcpInitInfo"
};

[[nodiscard]] Status invalidInfo(const InfoKind& kind, const std::string& text);

/// Refuses what is no object, an unknown key and a missing one: the texts of a Python call with
/// wrong keyword arguments.
Status checkKeys(const InfoKind& kind,
                 const boost::json::value& info,
                 std::initializer_list<std::string_view> required,
                 std::initializer_list<std::string_view> optional);

/// Null and other types give nullopt.
[[nodiscard]] std::optional<std::int64_t> integerOf(const boost::json::value* value);
[[nodiscard]] std::optional<std::string> textOf(const boost::json::value* value);

/// `names`, `dtype_names` and `shapes` of an update_info, which checkKeys found to be there.
Result<std::vector<TensorSpec>> parseTensors(const InfoKind& kind,
                                             const boost::json::object& object);

}  // namespace pushrod::engines::receiver
