// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/segment.h"

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <string_view>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace pushrod::transports::shm {

namespace {

/// Where Linux keeps POSIX shared memory.
constexpr std::string_view kFolder = "/dev/shm";
constexpr std::string_view kPrefix = "pushrod.";
constexpr std::string_view kLockSuffix = ".lock";
/// A cleaner may take and remove a lock file between its making and its locking.
constexpr int kLockTries = 100;

std::string lockPath(std::string_view name) {
  return std::string(kFolder).append(name).append(kLockSuffix);
}

Status failed(const std::string& what, int error) {
  return {Code::kUnavailable, what + ": " + std::generic_category().message(error)};
}

/// Whether the open lock file still is the one under its path.
bool stillThere(int fd, const std::string& path) {
  struct stat opened {};

  struct stat named {};

  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

/// Makes and locks a new lock file.
Result<int> lockNew(const std::string& path) {
  for (int i = 0; i < kLockTries; ++i) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
      return failed("lock file " + path + " cannot be made", errno);
    }
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && stillThere(fd, path)) {
      return fd;
    }
    ::close(fd);
  }
  return Status(Code::kUnavailable, "lock file " + path + " is removed again and again");
}

/// Removes the segment that `lock` (a file's name in the folder) stands for, if its owner is dead.
bool removeIfDead(const std::string& lock) {
  const std::string path = std::string(kFolder) + "/" + lock;
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) {
    return false;
  }
  const bool dead = ::flock(fd, LOCK_EX | LOCK_NB) == 0 && stillThere(fd, path);
  if (dead) {
    // The segment first: without its lock file nobody would look for it again.
    ::shm_unlink(("/" + lock.substr(0, lock.size() - kLockSuffix.size())).c_str());
    ::unlink(path.c_str());
  }
  ::close(fd);
  return dead;
}

}  // namespace

std::string segmentName(const std::string& job, const std::string& unique, int rank) {
  return "/" + std::string(kPrefix) + job + "." + unique + "-" + std::to_string(rank);
}

Result<std::unique_ptr<Segment>> Segment::create(const std::string& name, std::uint64_t bytes) {
  Result<int> lock = lockNew(lockPath(name));
  if (!lock.ok()) {
    return lock.status();
  }
  std::unique_ptr<Segment> segment(new Segment(name, *lock));
  if (Status allocated = segment->allocate(bytes); !allocated.ok()) {
    return allocated;
  }
  return segment;
}

Status Segment::allocate(std::uint64_t bytes) {
  const std::string what =
      "shared memory segment " + name_ + " of " + std::to_string(bytes) + " bytes cannot be made";
  const int fd = ::shm_open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (fd < 0) {
    return failed(what, errno);
  }
  made_ = true;
  int error = EINTR;
  while (error == EINTR) {
    error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  }
  if (error == 0) {
    // Page tables are filled here too: later it would be done while generation is paused.
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    error = memory == MAP_FAILED ? errno : 0;
    data_ = memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
    size_ = memory == MAP_FAILED ? 0 : bytes;
  }
  ::close(fd);
  if (error == 0) {
    return {};
  }
  const Status why = failed(what, error);
  return {why.code(),
          why.message() + "; lower transport.buffer or transport.buffers, or enlarge " +
              std::string(kFolder)};
}

Segment::~Segment() {
  if (data_ != nullptr) {
    ::munmap(data_, size_);
  }
  if (made_) {
    ::shm_unlink(name_.c_str());
  }
  ::unlink(lockPath(name_).c_str());
  ::close(lock_);
}

std::size_t removeDeadSegments() {
  std::vector<std::string> locks;
  if (DIR* folder = ::opendir(std::string(kFolder).c_str()); folder != nullptr) {
    while (const dirent* entry = ::readdir(folder)) {
      const std::string_view name(entry->d_name);
      if (name.starts_with(kPrefix) && name.ends_with(kLockSuffix)) {
        locks.emplace_back(name);
      }
    }
    ::closedir(folder);
  }
  std::size_t removed = 0;
  for (const std::string& lock : locks) {
    removed += removeIfDead(lock) ? 1 : 0;
  }
  return removed;
}

}  // namespace pushrod::transports::shm
