// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "ranks/store.h"

namespace pushrod::ranks {

/// One file per key below a folder that all ranks see, written by rename. A file system that does
/// not answer blocks its caller: no limit can end that.
class FileStore final : public Store {
 public:
  /// Creates the folder.
  static Result<std::unique_ptr<Store>> open(const std::string& folder);

  explicit FileStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  Status set(const std::string& key, const std::string& value, Deadline deadline) override;
  Result<std::vector<std::optional<std::string>>> get(const std::vector<std::string>& keys,
                                                      Deadline deadline) override;
  Status erase(const std::vector<std::string>& keys, Deadline deadline) override;
  Status eraseBelow(const std::string& prefix, Deadline deadline) override;

  [[nodiscard]] std::string describe() const override { return "file://" + folder_.string(); }

 private:
  [[nodiscard]] std::filesystem::path fileOf(const std::string& key) const;

  std::filesystem::path folder_;
};

}  // namespace pushrod::ranks
