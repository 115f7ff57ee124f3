// SPDX-License-Identifier: Apache-2.0
// The tcp plane to one receiving process against raw loopback TCP of the same chunks, already
// packed. Usage: bench_tcp_push [LAYERS [ROUNDS [BUFFER_MIB]]].
#include <arpa/inet.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

#include "bench/measure.h"
#include "bench/model.h"
#include "tests/support/tcp_receiver.h"
#include "transports/chunk_plan.h"
#include "transports/manifest_check.h"
#include "transports/tcp/plane.h"
#include "transports/tcp/wire.h"

namespace pushrod::bench {
namespace {

using pushrod::testing::InitInfo;
using pushrod::testing::TcpReceiver;
using transports::ManifestChecker;
using transports::tcp::encodeHeader;
using transports::tcp::FrameKind;
using transports::tcp::TcpPlane;

Deadline limit() {
  return Deadline::at(std::chrono::steady_clock::now() + std::chrono::seconds(60));
}

/// Where the receiving process connects to, and how it reads.
struct Target {
  InitInfo info;
  bool hello = true;
  bool verify = false;
};

/// The receiving process: one thread per connection, of which one has work at a time. A byte on
/// `done` follows each update: 1 good, 0 bad.
int receive(const std::vector<Target>& targets, int done) {
  std::vector<std::thread> threads;
  for (const Target& target : targets) {
    threads.emplace_back([&target, done] {
      TcpReceiver worker =
          TcpReceiver::connectTo(target.info.address, target.info.port, std::chrono::seconds(120));
      if (target.hello && worker.hello(target.info.channel, target.info.rankOffset) != 0) {
        return;
      }
      const auto report = [&](char good) { return ::write(done, &good, 1) == 1; };
      bool good = true;
      while (good) {
        good = worker.discardUpdate(target.verify);
        good = report(good ? 1 : 0) && good;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return 0;
}

bool sendAll(int fd, const std::byte* bytes, std::size_t size) {
  while (size != 0) {
    const ssize_t sent = ::send(fd, bytes, size, MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

/// The raw side: a blocking socket and two packed buffers that are sent over and over.
class RawSender {
 public:
  RawSender() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address_;
    auto* generic = reinterpret_cast<sockaddr*>(&address_);
    if (::bind(listener_, generic, length) != 0 || ::listen(listener_, 1) != 0 ||
        ::getsockname(listener_, generic, &length) != 0) {
      std::abort();
    }
  }

  [[nodiscard]] Target target() const {
    Target target;
    target.info.address = "127.0.0.1";
    target.info.port = ntohs(address_.sin_port);
    target.hello = false;
    return target;
  }

  bool accept() {
    fd_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int on = 1;
    return fd_ >= 0 && ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0;
  }

  /// Chunks straight from the model's memory, as if packed: distinct, cold bytes like the plane's.
  bool push(const Model& model, const std::vector<std::uint64_t>& chunks) const {
    std::uint32_t index = 0;
    std::size_t at = 0;
    for (const std::uint64_t bytes : chunks) {
      const auto header = encodeHeader(FrameKind::kChunk, index++, bytes, 0);
      if (!sendAll(fd_, header.data(), header.size()) || !sendAll(fd_, model.memory + at, bytes)) {
        return false;
      }
      at += bytes;
    }
    const auto end = encodeHeader(FrameKind::kEnd, index, 0, 0);
    return sendAll(fd_, end.data(), end.size());
  }

 private:
  int listener_;
  int fd_ = -1;
  sockaddr_in address_{};
};

std::unique_ptr<TcpPlane> makePlane(std::uint64_t buffer, bool digest) {
  TransportConfig config;
  config.kind = TransportKind::kTcp;
  config.buffer = buffer;
  config.digest = digest;
  return std::make_unique<TcpPlane>(config, std::chrono::seconds(60));
}

Target announced(TcpPlane& plane, bool verify) {
  ChannelSpec spec;
  spec.engines = {{"engine", 1, "", "http://127.0.0.1:1"}};
  const auto infos = plane.announce(spec);
  if (!infos.ok()) {
    std::fprintf(stderr, "%s\n", infos.status().message().c_str());
    std::abort();
  }
  return {InitInfo::parse(infos->front()), true, verify};
}

Status pushAll(TcpPlane& plane, const Model& model) {
  ManifestChecker checker(model.manifest, DtypeMismatch::kCast);
  Status status = plane.begin(model.manifest);
  for (std::size_t i = 0; i < model.views.size() && status.ok(); ++i) {
    status = checker.check(i, model.views[i]);
    if (status.ok()) {
      status = plane.put(model.manifest.tensors[i], model.views[i], limit());
    }
  }
  if (status.ok()) {
    status = checker.end(model.views.size());
  }
  return status.ok() ? plane.flush(limit()) : status;
}

bool push(TcpPlane& plane, const Model& model) {
  const Status status = pushAll(plane, model);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.toString().c_str());
  }
  return status.ok();
}

/// One line of /proc/self/status in bytes.
std::uint64_t statusBytes(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key + ":", 0) == 0) {
      return std::strtoull(line.c_str() + key.size() + 1, nullptr, 10) * 1024;
    }
  }
  return 0;
}

double childCpu(pid_t child) {
  std::ifstream in("/proc/" + std::to_string(child) + "/stat");
  std::string field;
  double ticks = 0;
  for (int i = 1; i <= 15 && in >> field; ++i) {
    ticks += i >= 14 ? std::strtod(field.c_str(), nullptr) : 0;
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

Verdict measure(const Model& model, std::uint64_t buffer, int rounds) {
  const std::vector<std::uint64_t> chunks = transports::chunkBytes(model.manifest, buffer);
  RawSender raw;
  const auto plain = makePlane(buffer, false);
  const auto digesting = makePlane(buffer, true);
  int done[2] = {-1, -1};
  if (::pipe(done) != 0) {
    std::abort();
  }
  const std::vector<Target> targets = {
      raw.target(), announced(*plain, false), announced(*digesting, true)};
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(done[0]);
    ::_exit(receive(targets, done[1]));
  }
  ::close(done[1]);
  const auto finished = [&] {
    char good = 0;
    return ::read(done[0], &good, 1) == 1 && good == 1;
  };
  if (!raw.accept() || !plain->open(limit()).ok() || !digesting->open(limit()).ok()) {
    return Verdict::kFail;
  }
  std::ofstream("/proc/self/clear_refs") << "5";
  const std::uint64_t before = statusBytes("VmHWM");
  const std::vector<Arm> arms = {
      {"raw tcp", [&] { return raw.push(model, chunks) && finished(); }},
      {"plane", [&] { return push(*plain, model) && finished(); }},
      {"plane with digest", [&] { return push(*digesting, model) && finished(); }}};
  Verdict verdict = compare(
      arms, {{1, 0, 0.9}, {2, 0, 0.75}}, static_cast<double>(model.bytes) / 1e9, rounds, [&] {
        return childCpu(child);
      });
  // Two planes live here, each with its own buffers.
  const std::uint64_t grown = statusBytes("VmHWM") - before;
  const std::uint64_t bound = 2 * (2 * buffer + 3 * model.manifest.largest()) + (16ULL << 20U);
  std::printf("peak memory of both planes: %.1f MiB, bound %.1f MiB\n",
              static_cast<double>(grown) / 1048576,
              static_cast<double>(bound) / 1048576);
  plain->abort(Status(Code::kAborted, "end"));
  digesting->abort(Status(Code::kAborted, "end"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(done[0]);
  return grown > bound ? Verdict::kFail : verdict;
}

}  // namespace
}  // namespace pushrod::bench

int main(int argc, char** argv) {
  const int layers = argc > 1 ? std::atoi(argv[1]) : 28;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  const int mib = argc > 3 ? std::atoi(argv[3]) : 64;
  if (layers < 1 || rounds < 1 || mib < 1) {
    std::fprintf(stderr, "usage: %s [LAYERS [ROUNDS [BUFFER_MIB]]]\n", argv[0]);
    return 2;
  }
  const pushrod::bench::Model model(pushrod::bench::qwenLike(layers, pushrod::DType::kBfloat16));
  std::printf("%zu tensors, %.2f GB bfloat16, buffer %d MiB\n",
              model.views.size(),
              static_cast<double>(model.bytes) / 1e9,
              mib);
  return static_cast<int>(
      pushrod::bench::measure(model, static_cast<std::uint64_t>(mib) << 20U, rounds));
}
