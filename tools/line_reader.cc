// SPDX-License-Identifier: Apache-2.0
#include "tools/line_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <unistd.h>

namespace pushrod::tools {

std::optional<std::string> LineReader::next(Deadline deadline, int stop) {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  constexpr Duration kLook = std::chrono::seconds(60);  // One poll's limit; then it looks again.
  const SteadyClock clock;
  std::size_t searched = 0;
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    searched = buffer_.size();
    if (searched > kMost || deadline.passed(clock)) {
      return std::nullopt;
    }
    pollfd entries[] = {{fd_, POLLIN, 0}, {stop, POLLIN, 0}};
    ::poll(entries, 2, static_cast<int>(std::min(deadline.remaining(clock), kLook).count()));
    if (entries[1].revents != 0) {
      return std::nullopt;
    }
    if (entries[0].revents == 0) {
      continue;
    }
    std::array<char, 4096> bytes{};
    const ssize_t got = ::read(fd_, bytes.data(), bytes.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (got <= 0) {
      return std::nullopt;
    }
    buffer_.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace pushrod::tools
