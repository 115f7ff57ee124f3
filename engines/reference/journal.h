// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include <pushrod/result.h>

namespace pushrod::engines::reference {

/// One JSON line per event, each written by one call so that lines never mix. Thread-safe. Bodies
/// appear only as digests: they carry channel ids.
class Journal {
 public:
  /// A journal that keeps nothing.
  Journal() = default;
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  /// Appends to `path`.
  static Result<std::unique_ptr<Journal>> open(const std::string& path);

  /// Adds "t" (seconds of the wall clock) and "event" in front of `fields`.
  void write(std::string_view event, const boost::json::object& fields);

 private:
  std::mutex mutex_;
  int descriptor_ = -1;
};

}  // namespace pushrod::engines::reference
