// SPDX-License-Identifier: Apache-2.0
#include "engines/receiver/socket.h"

#include <array>
#include <cerrno>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "common/check.h"

namespace pushrod::engines::receiver {

namespace {

/// So soon a connection is broken whose other host vanished without a word.
constexpr int kIdleSeconds = 30;
constexpr int kProbeSeconds = 10;
constexpr int kProbes = 3;

std::string systemText(int error) {
  return std::generic_category().message(error);
}

Status unavailable(std::string text) {
  return {Code::kUnavailable, std::move(text)};
}

int pollLimit(Deadline deadline) {
  if (deadline.isNever()) {
    return -1;
  }
  constexpr Duration kSlice = std::chrono::minutes(10);
  return static_cast<int>(std::min(deadline.remaining(SteadyClock()), kSlice).count());
}

}  // namespace

StopSignal::StopSignal() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  PUSHROD_CHECK(descriptor_ >= 0);
}

StopSignal::~StopSignal() {
  ::close(descriptor_);
}

void StopSignal::raise() const {
  const std::uint64_t one = 1;
  // A full counter means that it is raised already.
  [[maybe_unused]] const ssize_t written = ::write(descriptor_, &one, sizeof one);
}

Socket::Socket(Socket&& other) noexcept : stop_(other.stop_), fd_(std::exchange(other.fd_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    stop_ = other.stop_;
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

Socket::~Socket() {
  close();
}

void Socket::close() {
  if (fd_ >= 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

Status Socket::wait(short events, Deadline deadline) const {
  while (true) {
    std::array<pollfd, 2> fds = {pollfd{fd_, events, 0}, pollfd{stop_->descriptor(), POLLIN, 0}};
    const int ready = ::poll(fds.data(), fds.size(), pollLimit(deadline));
    if (fds[1].revents != 0) {
      return {Code::kCancelled, "the engine is stopping"};
    }
    if (fds[0].revents != 0) {
      return {};
    }
    if (ready < 0 && errno != EINTR) {
      return unavailable("poll: " + systemText(errno));
    }
    if (!deadline.isNever() && deadline.passed(SteadyClock())) {
      return {Code::kDeadlineExceeded, "no answer within the limit"};
    }
  }
}

Status Socket::connect(const std::string& address, std::uint16_t port, Deadline deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    return unavailable(std::string("address not found: ") + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
  Status last = unavailable("no address");
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    close();
    fd_ = ::socket(entry->ai_family, entry->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0) {
      last = unavailable(systemText(errno));
      continue;
    }
    if (::connect(fd_, entry->ai_addr, entry->ai_addrlen) != 0 && errno != EINPROGRESS) {
      last = unavailable(systemText(errno));
      continue;
    }
    last = finishConnect(deadline);
    if (last.ok()) {
      return last;
    }
  }
  close();
  return last;
}

Status Socket::finishConnect(Deadline deadline) {
  if (Status ready = wait(POLLOUT, deadline); !ready.ok()) {
    return ready;
  }
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) {
    return unavailable(systemText(error));
  }
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd_, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof kIdleSeconds);
  ::setsockopt(fd_, IPPROTO_TCP, TCP_KEEPINTVL, &kProbeSeconds, sizeof kProbeSeconds);
  ::setsockopt(fd_, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
  return {};
}

Status Socket::write(const void* data, std::size_t bytes, Deadline deadline) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(fd_, at, bytes, MSG_NOSIGNAL);
    if (sent >= 0) {
      at += sent;
      bytes -= static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      if (Status ready = wait(POLLOUT, deadline); !ready.ok()) {
        return ready;
      }
    } else if (errno != EINTR) {
      return unavailable(systemText(errno));
    }
  }
  return {};
}

Status Socket::read(void* data, std::size_t bytes, Deadline deadline) {
  char* at = static_cast<char*>(data);
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::recv(fd_, at + done, bytes - done, 0);
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (got == 0) {
      return unavailable("the source closed the connection after " + std::to_string(done) + " of " +
                         std::to_string(bytes) + " bytes");
    } else if (errno == EAGAIN) {
      if (Status ready = wait(POLLIN, deadline); !ready.ok()) {
        return ready;
      }
    } else if (errno != EINTR) {
      return unavailable("the connection to the source broke: " + systemText(errno));
    }
  }
  return {};
}

Status Socket::waitClosed() {
  if (Status ended = wait(POLLRDHUP, Deadline::never()); !ended.ok()) {
    return ended;
  }
  return unavailable("the source closed the connection");
}

}  // namespace pushrod::engines::receiver
