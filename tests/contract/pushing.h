// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/contract/engine_pair.h"
#include "transports/tcp/plane.h"

// The sending side of a push in these tests.

namespace pushrod::contract {

inline constexpr std::int64_t kTensorBytes = 1 << 16;

inline Manifest manifestOf(std::size_t tensors) {
  Manifest manifest;
  for (std::size_t i = 0; i < tensors; ++i) {
    manifest.tensors.push_back(
        {"model.layers." + std::to_string(i) + ".w", DType::kInt8, {kTensorBytes}, 0});
  }
  return manifest;
}

inline Call bodyCall(CallKind kind, const std::string& body) {
  Call call;
  call.kind = kind;
  call.body = std::make_shared<const std::string>(body);
  return call;
}

inline TransportConfig smallBuffers() {
  TransportConfig config;
  config.kind = TransportKind::kTcp;
  config.buffer = 1 << 17;
  config.bind = "127.0.0.1";
  return config;
}

/// Begins a channel to one engine; returns its init_info.
inline std::string announceTo(transports::tcp::TcpPlane& plane, std::uint16_t port, int workers) {
  ChannelSpec spec;
  spec.epoch = 1;
  PlaneEngine engine;
  engine.name = "fe";
  engine.workers = workers;
  engine.url = "http://127.0.0.1:" + std::to_string(port);
  spec.engines.push_back(engine);
  const auto bodies = plane.announce(spec);
  EXPECT_TRUE(bodies.ok()) << bodies.status().message();
  return bodies.ok() ? bodies->front() : "{}";
}

inline Reply await(std::future<Reply>& future) {
  if (future.wait_for(kPatience) != std::future_status::ready) {
    ADD_FAILURE() << "no reply";
    return {};
  }
  return future.get();
}

/// Opens a channel to one engine, with the init call beside it.
inline void openChannel(transports::tcp::TcpPlane& plane,
                        BlockingClient& client,
                        std::uint16_t port,
                        int workers) {
  std::future<Reply> init =
      client.begin(bodyCall(CallKind::kInit, announceTo(plane, port, workers)));
  const SteadyClock clock;
  const Status open = plane.open(Deadline::after(clock, std::chrono::seconds(10)));
  EXPECT_TRUE(open.ok()) << open.message();
  const Reply reply = await(init);
  EXPECT_TRUE(reply.status.ok()) << reply.status.message();
}

/// Streams the manifest; returns the first failure.
inline Status stream(transports::tcp::TcpPlane& plane, const Manifest& manifest) {
  const std::vector<std::int8_t> bytes(kTensorBytes, 7);
  const SteadyClock clock;
  const Deadline deadline = Deadline::after(clock, std::chrono::seconds(10));
  Status status = plane.begin(manifest);
  for (const TensorSpec& spec : manifest.tensors) {
    if (!status) {
      return status;
    }
    TensorView view;
    view.name = spec.name;
    view.dtype = spec.dtype;
    view.shape = spec.shape;
    view.data = bytes.data();
    status = plane.put(spec, view, deadline);
  }
  return status ? plane.flush(deadline) : status;
}

}  // namespace pushrod::contract
