// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <pushrod/result.h>

#include "tools/descriptor.h"

namespace pushrod::tools {

/// A folder of this process alone, removed with the object. While it lives, a file in it is locked;
/// a process that was killed leaves folder and file behind, but not the lock, and the next create()
/// removes what it finds unlocked.
class PrivateFolder {
 public:
  /// Makes one below `base` (empty: the system's folder for temporary files).
  static Result<std::unique_ptr<PrivateFolder>> create(const std::string& base = "");
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  [[nodiscard]] std::string file(std::string_view name) const {
    return path_ + "/" + std::string(name);
  }

 private:
  PrivateFolder(std::string path, Descriptor lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  Descriptor lock_;
};

}  // namespace pushrod::tools
