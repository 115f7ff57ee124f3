// SPDX-License-Identifier: Apache-2.0
// Any bytes from a tcp source to the reference engine's worker, from a worker to the source, and as
// the bodies that announce frames or a chunk in shared memory: a failure with a reason, or every
// tensor whole. Nothing blocks and nothing is kept.
#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <boost/json/parse.hpp>

#include "common/check.h"
#include "engines/receiver/shm_info.h"
#include "engines/receiver/tcp_receiver.h"
#include "engines/reference/loading_sink.h"
#include "transports/tcp/roster.h"

namespace {

using namespace pushrod;
using namespace pushrod::engines::receiver;
using namespace pushrod::engines::reference;

constexpr std::int64_t kBudget = 1 << 20;

int listenSomewhere(std::uint16_t& port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  PUSHROD_CHECK(fd >= 0 && ::bind(fd, raw, length) == 0 && ::listen(fd, 8) == 0);
  PUSHROD_CHECK(::getsockname(fd, raw, &length) == 0);
  port = ntohs(address.sin_port);
  return fd;
}

/// Takes one worker and sends it `text`, then ends the stream and waits for the worker's end.
void serve(int listener, std::string_view text) {
  const int fd = ::accept(listener, nullptr, nullptr);
  PUSHROD_CHECK(fd >= 0);
  std::array<char, 32> hello{};
  PUSHROD_CHECK(::recv(fd, hello.data(), hello.size(), MSG_WAITALL) == 32);
  const char accepted = 0;
  PUSHROD_CHECK(::send(fd, &accepted, 1, MSG_NOSIGNAL) == 1);
  std::size_t sent = 0;
  while (sent < text.size()) {
    const auto count = ::send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) {
      break;
    }
    sent += static_cast<std::size_t>(count);
  }
  ::shutdown(fd, SHUT_WR);
  while (::recv(fd, hello.data(), hello.size(), 0) > 0) {
  }
  ::close(fd);
}

void frames(std::string_view text) {
  static std::uint16_t port = 0;
  static const int kListener = listenSomewhere(port);
  const StopSignal stop;
  ByteBudget budget(kBudget);
  TcpUpdate update;
  update.tensors = {{"a", DType::kUint8, {8}, 0},
                    {"layers.0.q_proj.weight", DType::kUint8, {2, 2}, 0},
                    {"c", DType::kUint8, {3}, 0},
                    {"e", DType::kUint8, {0}, 0}};
  TcpInit init;
  init.sources = {{0, "127.0.0.1", port}};
  init.bufferBytes = 10;
  std::size_t loaded = 0;
  std::thread source([&] { serve(kListener, text); });
  {
    TcpReceiver receiver(stop);
    const Status joined = receiver.join(init, 1);
    PUSHROD_CHECK(joined.ok());
    ReceiveHooks hooks;
    hooks.chunk = [](std::uint32_t /*index*/, std::uint64_t /*bytes*/) {};
    hooks.tensor = [&loaded](const LoadedTensor& tensor) -> std::optional<std::string> {
      PUSHROD_CHECK(tensor.sha256.size() == 64);
      ++loaded;
      return std::nullopt;
    };
    hooks.die = [] {};
    LoadingSink sink(budget, {}, hooks);
    const Status done = receiver.receive(update, sink);
    PUSHROD_CHECK(done.ok() ? loaded == update.tensors.size() : !done.message().empty());
    PUSHROD_CHECK(done.ok() == receiver.joined());
  }
  source.join();
  PUSHROD_CHECK(budget.take(kBudget));
}

/// What a worker says first. Two channels, known by the first byte of their ids.
void hello(std::string_view text) {
  using namespace pushrod::transports::tcp;
  std::array<std::byte, kHelloSize> bytes{};
  std::memcpy(bytes.data(), text.data(), std::min(text.size(), bytes.size()));
  const auto said = decodeHello(bytes);
  auto roster = Roster::make({{"a", 2, ""}, {"b", 1, ""}}, Group::kPerEngine);
  PUSHROD_CHECK(roster.ok() && roster->setIds({common::Id{1}, common::Id{2}}));
  if (!said) {
    return;
  }
  PUSHROD_CHECK(text.starts_with("PUSHROD1"));
  Answer refusal = Answer::kAccepted;
  const auto slot = roster->find(*said, refusal);
  if (!slot) {
    PUSHROD_CHECK(refusal == Answer::kUnknownChannel || refusal == Answer::kBadRank);
    return;
  }
  PUSHROD_CHECK(roster->slots().at(*slot).rank == said->rank);
  PUSHROD_CHECK(roster->ids().at(roster->slots().at(*slot).engine) == said->channel);
}

void bodies(std::string_view text) {
  boost::json::error_code error;
  const boost::json::value value = boost::json::parse({text.data(), text.size()}, error);
  if (error) {
    return;
  }
  (void)TcpInit::parse(value);
  const auto update = TcpUpdate::parse(value);
  if (update) {
    std::size_t next = 0;
    for (const ChunkPlan& chunk : cutChunks(update->tensors, 64)) {
      PUSHROD_CHECK(chunk.first == next && chunk.bytes > 0);
      next += chunk.count;
    }
    PUSHROD_CHECK(next <= update->tensors.size());
  }
  (void)checkShmInit(value);
  if (const auto shared = ShmUpdate::parse(value)) {
    std::uint64_t total = 0;
    for (const TensorSpec& tensor : shared->tensors) {
      total += tensor.bytes();
    }
    PUSHROD_CHECK(total == shared->bytes && !shared->segments.empty());
    for (const auto& [host, segment] : shared->segments) {
      PUSHROD_CHECK(segment.bytes == total && segment.name.rfind('/') == 0);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!text.empty() && text.front() == '{') {
    bodies(text);
  } else if (!text.empty() && text.front() == 'P') {
    hello(text);
  } else {
    frames(text);
  }
  return 0;
}
