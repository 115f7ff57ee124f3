// SPDX-License-Identifier: Apache-2.0
#include "bench/control_plane_engines.h"

#include <arpa/inet.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <string_view>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/check.h"

namespace pushrod::bench {
namespace {

constexpr std::string_view kAnswer =
    "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-length: 23\r\n"
    "content-type: application/json\r\n\r\n{\"weight_version\":\"17\"}";
static_assert(kAnswer.substr(kAnswer.find("\r\n\r\n") + 4).size() == 23);

/// Bytes of the first whole request in `text`, 0 when there is none.
std::size_t requestBytes(std::string_view text) {
  const auto end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) {
    return 0;
  }
  constexpr std::string_view kLength = "Content-Length: ";
  const auto length = text.find(kLength);
  std::size_t body = 0;
  if (length < end) {
    body = static_cast<std::size_t>(std::atoll(text.data() + length + kLength.size()));
  }
  return text.size() >= end + 4 + body ? end + 4 + body : 0;
}

int listenOnLoopback(std::uint16_t& port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  PUSHROD_CHECK(::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  PUSHROD_CHECK(::listen(listener, 64) == 0);
  PUSHROD_CHECK(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port = ntohs(address.sin_port);
  return listener;
}

class Loop {
 public:
  explicit Loop(const std::vector<int>& listeners) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (const int listener : listeners) {
      watch(listener);
      pending_.emplace(listener, Connection{true, {}});
    }
  }

  [[noreturn]] void run() {
    for (;;) {
      epoll_event events[64];
      const int ready = ::epoll_wait(epoll_, events, 64, -1);
      for (int i = 0; i < ready; ++i) {
        serve(events[i].data.fd);
      }
    }
  }

 private:
  struct Connection {
    bool listener = false;
    std::string input;
  };

  void watch(int descriptor) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event);
  }

  void serve(int descriptor) {
    Connection& connection = pending_[descriptor];
    if (connection.listener) {
      const int accepted = ::accept4(descriptor, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (accepted >= 0) {
        const int on = 1;
        ::setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        pending_[accepted] = Connection{};
        watch(accepted);
      }
      return;
    }
    char bytes[65536];
    const ssize_t got = ::recv(descriptor, bytes, sizeof bytes, 0);
    if (got <= 0) {
      if (got == 0 || errno != EAGAIN) {
        ::close(descriptor);
        pending_.erase(descriptor);
      }
      return;
    }
    connection.input.append(bytes, static_cast<std::size_t>(got));
    while (const std::size_t whole = requestBytes(connection.input)) {
      connection.input.erase(0, whole);
      // The answer is far below a socket's buffer.
      PUSHROD_CHECK(::send(descriptor, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL) ==
                    static_cast<ssize_t>(kAnswer.size()));
    }
  }

  int epoll_;
  std::map<int, Connection> pending_;
};

}  // namespace

FakeEngines::FakeEngines(int count) {
  std::vector<int> listeners;
  for (int i = 0; i < count; ++i) {
    listeners.push_back(listenOnLoopback(ports_.emplace_back()));
  }
  const pid_t parent = ::getpid();
  child_ = ::fork();
  PUSHROD_CHECK(child_ >= 0);
  if (child_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
      ::_exit(1);
    }
    Loop(listeners).run();
  }
  for (const int listener : listeners) {
    ::close(listener);
  }
}

FakeEngines::~FakeEngines() {
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
}

}  // namespace pushrod::bench
