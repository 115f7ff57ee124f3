// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench/control_plane_clients.h"
#include "common/check.h"

namespace pushrod::bench {
namespace {

class BareClient final : public PushClient {
 public:
  BareClient(const std::vector<std::uint16_t>& ports, const std::vector<Step>& steps)
      : steps_(steps), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (const Step& step : steps_) {
      std::string head = step.method + " " + step.target +
                         " HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bare\r\nAccept: */*\r\n";
      if (step.body) {
        head += "Content-Type: application/json\r\nContent-Length: " +
                std::to_string(step.body->size()) + "\r\n";
      }
      heads_.push_back(head + "\r\n");
    }
    for (const std::uint16_t port : ports) {
      open(port);
    }
  }

  ~BareClient() override {
    for (const int descriptor : sockets_) {
      ::close(descriptor);
    }
    ::close(epoll_);
  }

  Cost push(int times) override {
    const double before = threadCpuSeconds();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) {
      for (std::size_t step = 0; step < steps_.size(); ++step) {
        for (const int descriptor : sockets_) {
          sendOn(descriptor, step);
        }
        collect();
      }
    }
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    return {threadCpuSeconds() - before, wall.count()};
  }

 private:
  void open(std::uint16_t port) {
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    PUSHROD_CHECK(::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) ==
                  0);
    const int on = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event);
    sockets_.push_back(descriptor);
  }

  void sendOn(int descriptor, std::size_t step) {
    iovec parts[2] = {{heads_[step].data(), heads_[step].size()}, {nullptr, 0}};
    std::size_t total = heads_[step].size();
    if (const auto& body = steps_[step].body) {
      parts[1] = {const_cast<char*>(body->data()), body->size()};
      total += body->size();
    }
    PUSHROD_CHECK(::writev(descriptor, parts, 2) == static_cast<ssize_t>(total));
  }

  void collect() {
    std::size_t answered = 0;
    while (answered < sockets_.size()) {
      epoll_event events[64];
      const int ready = ::epoll_wait(epoll_, events, 64, 10000);
      PUSHROD_CHECK(ready > 0);
      for (int i = 0; i < ready; ++i) {
        char bytes[4096];
        const ssize_t got = ::recv(events[i].data.fd, bytes, sizeof bytes, 0);
        PUSHROD_CHECK(got > 12 && bytes[9] == '2');
        ++answered;
      }
    }
  }

  std::vector<Step> steps_;
  std::vector<std::string> heads_;
  std::vector<int> sockets_;
  int epoll_;
};

}  // namespace

std::unique_ptr<PushClient> makeBareClient(const std::vector<std::uint16_t>& ports,
                                           const std::vector<Step>& steps) {
  return std::make_unique<BareClient>(ports, steps);
}

double threadCpuSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace pushrod::bench
