// SPDX-License-Identifier: Apache-2.0
#include "ranks/tcp_store_server.h"

#include <utility>

#include "net/io_executor.h"
#include "ranks/store_frame.h"

namespace pushrod::ranks {

namespace {

constexpr std::size_t kMaxClients = 16384;
constexpr std::size_t kMaxValues = 262144;

}  // namespace

Result<std::unique_ptr<TcpStoreServer>> TcpStoreServer::open(net::IoExecutor& executor,
                                                             const std::string& address,
                                                             std::uint16_t port) {
  auto server = std::make_unique<TcpStoreServer>();
  // The listener is a member of the server, so its handler cannot outlive it.
  auto listener = net::Listener::open(
      executor, address, port, [self = server.get()](std::unique_ptr<net::Stream> stream) {
        self->add(std::move(stream));
      });
  if (!listener) {
    return listener.status();
  }
  server->listener_ = std::move(*listener);
  return server;
}

void TcpStoreServer::add(std::unique_ptr<net::Stream> stream) {
  if (clients_.size() >= kMaxClients) {
    return;
  }
  const std::uint64_t id = nextClient_++;
  net::Stream& added = *stream;
  clients_.emplace(id, Client{std::move(stream), {}});
  added.start({[this, id](std::span<const std::byte> bytes) { receive(id, bytes); },
               [this, id](const Status&) { clients_.erase(id); }});
  added.write(std::string(kStoreGreeting));
}

void TcpStoreServer::receive(std::uint64_t id, std::span<const std::byte> bytes) {
  Client& client = clients_.at(id);
  client.input.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (true) {
    auto frame = takeFrame(client.input, kMaxStoreFrame);
    if (frame && !*frame) {
      return;
    }
    Result<std::string> reply = frame ? Result<std::string>(std::string()) : frame.status();
    if (frame) {
      const auto request = decodeRequest(**frame);
      reply = request ? answer(*request) : Result<std::string>(request.status());
    }
    if (!reply) {
      clients_.erase(id);
      return;
    }
    client.stream->write(framed(*reply));
  }
}

Result<std::string> TcpStoreServer::answer(const StoreRequest& request) {
  std::vector<std::optional<std::string>> found;
  std::size_t bytes = 0;
  switch (request.op) {
    case StoreOp::kGet:
      for (const std::string& key : request.keys) {
        const auto value = values_.find(key);
        found.emplace_back(value == values_.end() ? std::nullopt : std::optional(value->second));
        bytes += found.back() ? found.back()->size() : 0;
        if (bytes > kMaxStoreFrame / 2) {
          return Status(Code::kUnavailable, "asked for too much at once");
        }
      }
      break;
    case StoreOp::kSet:
      if (values_.size() >= kMaxValues) {
        return Status(Code::kUnavailable, "the ranks' store is full");
      }
      values_[request.keys.front()] = request.value;
      break;
    case StoreOp::kErase:
      for (const std::string& key : request.keys) {
        values_.erase(key);
      }
      break;
  }
  return encodeReply(found);
}

}  // namespace pushrod::ranks
