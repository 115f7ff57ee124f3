// SPDX-License-Identifier: Apache-2.0
#include "tools/private_folder.h"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace pushrod::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "pushrod.";
constexpr std::string_view kRandom = "XXXXXX";
constexpr std::string_view kLockName = "lock";
constexpr std::string_view kUnlockedName = "lock.new";

/// Our own real folder, not somebody else's or a link put in its place.
bool isOurs(const fs::path& path) {
  struct stat state = {};
  return ::lstat(path.c_str(), &state) == 0 && S_ISDIR(state.st_mode) &&
         state.st_uid == ::geteuid();
}

/// A process that fell between making its folder and its lock file, which takes milliseconds,
/// leaves one with nothing in it but perhaps the file's first name.
void removeIfHalfMade(const fs::path& path) {
  constexpr auto kLongestMaking = std::chrono::hours(1);
  std::error_code error;
  const auto changed = fs::last_write_time(path, error);
  const bool named = path.filename().string().size() == kPrefix.size() + kRandom.size();
  if (error || !named || fs::file_time_type::clock::now() - changed < kLongestMaking) {
    return;
  }
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename() != kUnlockedName) {
      return;
    }
  }
  ::unlink((path / kUnlockedName).c_str());
  ::rmdir(path.c_str());
}

/// Removes a dead process's folder. One without a lock file is being made, or none of ours, unless
/// it is old and empty.
void removeIfDead(const fs::path& path) {
  if (!isOurs(path)) {
    return;
  }
  const Descriptor lock(::open((path / kLockName).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!lock.valid()) {
    removeIfHalfMade(path);
    return;
  }
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
}

void removeDead(const fs::path& base) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(base, fs::directory_options::skip_permission_denied, error), end;
       !error && at != end;
       at.increment(error)) {
    if (at->path().filename().string().starts_with(kPrefix)) {
      found.push_back(at->path());
    }
  }
  for (const fs::path& path : found) {
    removeIfDead(path);
  }
}

/// The lock file appears under its name only when it is locked, so that nobody takes a folder that
/// is being made for a dead one.
Descriptor makeLock(const fs::path& folder) {
  const fs::path unnamed = folder / kUnlockedName;
  Descriptor lock(::open(unnamed.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 ||
      ::rename(unnamed.c_str(), (folder / kLockName).c_str()) != 0) {
    return {};
  }
  return lock;
}

}  // namespace

Result<std::unique_ptr<PrivateFolder>> PrivateFolder::create(const std::string& base) {
  std::error_code error;
  const fs::path root = base.empty() ? fs::temp_directory_path(error) : fs::path(base);
  if (error) {
    return Status(Code::kUnavailable,
                  "no folder for temporary files: " + error.message() +
                      "; set TMPDIR to a folder that may be written");
  }
  removeDead(root);
  std::string name = (root / (std::string(kPrefix) + std::string(kRandom))).string();
  if (::mkdtemp(name.data()) == nullptr) {
    return Status(Code::kUnavailable,
                  "no temporary folder can be made in " + root.string() + ": " +
                      std::generic_category().message(errno) +
                      "; set TMPDIR to a folder that may be written");
  }
  Descriptor lock = makeLock(name);
  if (!lock.valid()) {
    fs::remove_all(name, error);
    return Status(Code::kUnavailable, name + ": no lock file can be made in it");
  }
  return std::unique_ptr<PrivateFolder>(new PrivateFolder(std::move(name), std::move(lock)));
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace pushrod::tools
