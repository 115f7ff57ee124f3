// SPDX-License-Identifier: Apache-2.0
#include "ranks/tcp_store.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

#include "ranks/local_address.h"
#include "ranks/store_frame.h"

namespace pushrod::ranks {

namespace {

constexpr std::size_t kKeysAtOnce = 256;

std::string systemError(int number) {
  return std::error_code(number, std::generic_category()).message();
}

/// Waits until the socket is ready for `events`; false at the deadline.
bool awaitReady(int socket, short events, Deadline deadline) {
  while (true) {
    const auto left = deadline.remaining(SteadyClock()).count();
    pollfd entry{socket, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min<std::int64_t>(left, INT_MAX)));
    if (ready > 0) {
      return true;
    }
    if (ready == 0 || errno != EINTR) {
      return false;
    }
  }
}

}  // namespace

void TcpStore::close() {
  if (socket_ >= 0) {
    ::close(socket_);
    socket_ = -1;
  }
  input_.clear();
}

Status TcpStore::connectTo(const std::string& address, Deadline deadline) {
  const auto target = socketAddress(address, port());
  if (!target) {
    return target.status();
  }
  socket_ = ::socket(target->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) {
    return failed("needs a socket: " + systemError(errno));
  }
  if (::connect(socket_, target->get(), target->size()) != 0) {
    if (errno != EINPROGRESS) {
      return failed("cannot be reached: " + systemError(errno));
    }
    if (!awaitReady(socket_, POLLOUT, deadline)) {
      return late("take a connection");
    }
    int error = 0;
    socklen_t size = sizeof(error);
    ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      return failed("cannot be reached: " + systemError(error));
    }
  }
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const Status greeted = receive(kStoreGreeting.size(), deadline);
  if (!greeted) {
    return greeted;
  }
  if (input_.compare(0, kStoreGreeting.size(), kStoreGreeting) != 0) {
    return failed("is not a Pushrod store: another program listens there; choose another port");
  }
  input_.erase(0, kStoreGreeting.size());
  return Status();
}

Status TcpStore::send(const std::string& bytes, Deadline deadline) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::send(socket_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!awaitReady(socket_, POLLOUT, deadline)) {
        return late("take a request");
      }
    } else if (errno != EINTR) {
      return failed("cannot be written to: " + systemError(errno));
    }
  }
  return Status();
}

Status TcpStore::receive(std::size_t count, Deadline deadline) {
  std::array<char, 16384> block{};
  while (input_.size() < count) {
    const ssize_t got = ::recv(socket_, block.data(), block.size(), 0);
    if (got > 0) {
      input_.append(block.data(), static_cast<std::size_t>(got));
    } else if (got == 0) {
      return failed("closed the connection");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!awaitReady(socket_, POLLIN, deadline)) {
        return late("answer");
      }
    } else if (errno != EINTR) {
      return failed("cannot be read from: " + systemError(errno));
    }
  }
  return Status();
}

Result<std::string> TcpStore::exchange(const std::string& frame, Deadline deadline) {
  Status status = connect(deadline);
  if (status.ok()) {
    status = send(frame, deadline);
  }
  while (status.ok()) {
    auto reply = takeFrame(input_, kMaxStoreFrame);
    if (!reply) {
      status = reply.status();
      break;
    }
    if (*reply) {
      return std::move(**reply);
    }
    status = receive(input_.size() + 1, deadline);
  }
  disconnect();
  return status;
}

Status TcpStore::set(const std::string& key, const std::string& value, Deadline deadline) {
  return exchange(framed(encodeRequest({StoreOp::kSet, {key}, value})), deadline).status();
}

Result<std::vector<std::optional<std::string>>> TcpStore::get(const std::vector<std::string>& keys,
                                                              Deadline deadline) {
  std::vector<std::optional<std::string>> values;
  for (std::size_t begin = 0; begin < keys.size(); begin += kKeysAtOnce) {
    const std::size_t end = std::min(keys.size(), begin + kKeysAtOnce);
    const auto first = keys.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = keys.begin() + static_cast<std::ptrdiff_t>(end);
    auto body = exchange(framed(encodeRequest({StoreOp::kGet, {first, last}, {}})), deadline);
    if (!body) {
      return body.status();
    }
    auto part = decodeReply(*body);
    if (!part || part->size() != end - begin) {
      disconnect();
      return failed("answered something else than it was asked");
    }
    values.insert(values.end(), part->begin(), part->end());
  }
  return values;
}

Status TcpStore::erase(const std::vector<std::string>& keys, Deadline deadline) {
  for (std::size_t begin = 0; begin < keys.size(); begin += kKeysAtOnce) {
    const std::size_t end = std::min(keys.size(), begin + kKeysAtOnce);
    const auto first = keys.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = keys.begin() + static_cast<std::ptrdiff_t>(end);
    auto body = exchange(framed(encodeRequest({StoreOp::kErase, {first, last}, {}})), deadline);
    if (!body) {
      return body.status();
    }
  }
  return Status();
}

}  // namespace pushrod::ranks
