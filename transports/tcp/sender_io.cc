// SPDX-License-Identifier: Apache-2.0
// What the sending thread does with one socket: accept, hello, write, watch, farewell.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <sys/socket.h>
#include <sys/uio.h>
#include <system_error>

#include "transports/tcp/sender.h"
#include "transports/utf8.h"

namespace pushrod::transports::tcp {

namespace {

constexpr Duration kHelloLimit = std::chrono::seconds(10);
/// Bytes written to one worker before the next has its turn.
constexpr std::uint64_t kTurn = std::uint64_t{4} << 20;
/// Connections taken from a listener at one go.
constexpr int kAcceptBurst = 64;

std::string errorText(int error) {
  return std::generic_category().message(error);
}

bool mustWait(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

void answer(const Fd& fd, Answer code) {
  const auto byte = static_cast<std::uint8_t>(code);
  // One byte fits any fresh socket; if the peer is gone, its slot simply stays empty or fails next.
  [[maybe_unused]] const ssize_t sent =
      ::send(fd.get(), &byte, sizeof byte, MSG_NOSIGNAL | MSG_DONTWAIT);
}

Fd acceptOne(const Fd& listener) {
  Fd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.valid()) {
    const int on = 1;
    // Both only sharpen what works without them.
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
  return fd;
}

}  // namespace

void Sender::acceptFrom(Listener& listener) {
  for (int i = 0; i < kAcceptBurst; ++i) {
    Fd fd = acceptOne(listener.fd);
    if (fd.valid()) {
      Pending& pending = pending_.emplace_back();
      pending.fd = std::move(fd);
      pending.limit = std::chrono::steady_clock::now() + kHelloLimit;
      continue;
    }
    const int error = errno;
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
      // The listener would stay readable: without this the loop would spin.
      listening_ = false;
      failed_ = true;
      monitor_.fail(Status(Code::kUnavailable,
                           "no further tcp connection can be accepted: " + errorText(error)));
    }
    return;
  }
}

void Sender::readHello(Pending& pending) {
  const ssize_t got = ::recv(pending.fd.get(),
                             pending.hello.data() + pending.have,
                             pending.hello.size() - pending.have,
                             MSG_DONTWAIT);
  if (got < 0 && mustWait(errno)) {
    return;
  }
  if (got <= 0) {
    pending.fd.reset();
    return;
  }
  pending.have += static_cast<std::size_t>(got);
  if (pending.have == pending.hello.size()) {
    admit(pending);
    pending.fd.reset();
  }
}

void Sender::admit(Pending& pending) {
  const auto hello = decodeHello(pending.hello);
  Answer refusal = Answer::kUnknownChannel;
  const auto slot = hello.has_value() ? roster_.find(*hello, refusal) : std::nullopt;
  if (!slot.has_value()) {
    answer(pending.fd, refusal);
    return;
  }
  if (failed_) {
    answer(pending.fd, Answer::kClosing);
    return;
  }
  Connection& connection = connections_[*slot];
  if (connection.fd.valid()) {
    answer(pending.fd, Answer::kBadRank);
    return;
  }
  answer(pending.fd, Answer::kAccepted);
  connection.fd = std::move(pending.fd);
  monitor_.joined(*slot);
}

void Sender::readFrom(std::size_t slot) {
  std::byte byte{};
  const ssize_t got = ::recv(connections_[slot].fd.get(), &byte, sizeof byte, MSG_DONTWAIT);
  if (got < 0 && mustWait(errno)) {
    return;
  }
  if (got < 0) {
    fault(slot, Code::kUnavailable, "lost its tcp connection: " + errorText(errno));
  } else if (got == 0) {
    fault(slot, Code::kUnavailable, "closed its tcp connection");
  } else {
    fault(slot, Code::kUnavailable, "sent bytes that the tcp protocol does not allow after hello");
  }
}

void Sender::pump(std::size_t slot) {
  Connection& connection = connections_[slot];
  std::uint64_t budget = kTurn;
  while (owes(connection) && budget != 0) {
    const Frame& frame = frames_[static_cast<std::size_t>(connection.frame - firstFrame_)];
    const std::uint64_t headerLeft = kHeaderSize - std::min(connection.offset, kHeaderSize);
    const std::uint64_t begun = connection.offset - (kHeaderSize - headerLeft);
    const std::uint64_t part = std::min<std::uint64_t>(frame.payload.size() - begun, budget);
    // sendmsg only reads; its type has no const.
    iovec pieces[2] = {
        {const_cast<std::byte*>(frame.header.data()) + (kHeaderSize - headerLeft), headerLeft},
        {const_cast<std::byte*>(frame.payload.data()) + begun, part}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    const ssize_t sent = ::sendmsg(connection.fd.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (!mustWait(errno)) {
        fault(slot, Code::kUnavailable, "lost its tcp connection: " + errorText(errno));
      }
      return;
    }
    const auto bytes = static_cast<std::uint64_t>(sent);
    budget -= std::min(budget, bytes);
    monitor_.addBytes(slot, bytes - std::min<std::uint64_t>(bytes, headerLeft));
    connection.offset += bytes;
    connection.lastMoved = std::chrono::steady_clock::now();
    if (connection.offset == kHeaderSize + frame.payload.size()) {
      connection.offset = 0;
      connection.frame += 1;
    } else if (bytes < headerLeft + part) {
      return;
    }
  }
}

void Sender::abortFrameTo(const Connection& connection, const std::string& reason) const {
  const Header header = encodeHeader(FrameKind::kAbort, 0, reason.size(), 0);
  std::string frame(reinterpret_cast<const char*>(header.data()), header.size());
  frame += reason;
  // Best effort: what does not fit now is cut off by the close, which the worker notices as well.
  [[maybe_unused]] const ssize_t sent =
      ::send(connection.fd.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Sender::sayGoodbye() {
  // Without where and when: it comes back inside the worker's own error, and that one in ours.
  const std::string reason(utf8Prefix(stopReason_.message(), kLongestReason));
  for (const Connection& connection : connections_) {
    // Inside a frame the worker would take the abort for payload; there the close has to do.
    if (connection.fd.valid() && connection.offset == 0) {
      abortFrameTo(connection, reason);
    }
  }
  for (Listener& listener : listeners_) {
    for (int i = 0; i < kAcceptBurst; ++i) {
      Fd late = acceptOne(listener.fd);
      if (!late.valid()) {
        break;
      }
      pending_.emplace_back().fd = std::move(late);
    }
  }
  for (const Pending& pending : pending_) {
    // Unread bytes would turn the close into a reset that overtakes the answer.
    std::array<std::byte, kHelloSize> unread;
    [[maybe_unused]] const ssize_t got =
        ::recv(pending.fd.get(), unread.data(), unread.size(), MSG_DONTWAIT);
    answer(pending.fd, Answer::kClosing);
  }
  pending_.clear();
  connections_.clear();
  listeners_.clear();
}

}  // namespace pushrod::transports::tcp
