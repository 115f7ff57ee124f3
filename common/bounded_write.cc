// SPDX-License-Identifier: Apache-2.0
#include "common/bounded_write.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace pushrod::common {
namespace {

bool isPipe(int fd) {
  struct stat state = {};
  return ::fstat(fd, &state) == 0 && (S_ISFIFO(state.st_mode) || S_ISSOCK(state.st_mode));
}

/// Where poll() has just said that more is taken.
ssize_t writeAtOnce(int fd, std::string_view text) {
  if (isPipe(fd)) {
    // Several processes may share it, and take the room that it had a moment ago.
    const iovec piece{const_cast<char*>(text.data()), text.size()};
    const ssize_t written = ::pwritev2(fd, &piece, 1, -1, RWF_NOWAIT);
    if (written >= 0 || errno != EOPNOTSUPP) {
      return written;
    }
  }
  return ::write(fd, text.data(), text.size());
}

}  // namespace

bool writeWithin(int fd, std::string_view text, std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + limit;
  while (!text.empty()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    pollfd entry{fd, POLLOUT, 0};
    const int ready = ::poll(&entry, 1, std::max(static_cast<int>(left.count()), 0));
    if (ready == 0) {
      return false;
    }
    const ssize_t written = ready < 0 ? ready : writeAtOnce(fd, text);
    if (written < 0 && errno != EINTR && errno != EAGAIN) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return true;
}

}  // namespace pushrod::common
