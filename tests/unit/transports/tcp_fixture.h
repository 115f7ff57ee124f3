// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tcp_receiver.h"
#include "transports/tcp/plane.h"

namespace pushrod::transports::tcp {

using pushrod::testing::InitInfo;
using pushrod::testing::TcpFrame;
using pushrod::testing::TcpReceiver;

inline Deadline in(std::chrono::milliseconds limit) {
  return Deadline::at(std::chrono::steady_clock::now() + limit);
}

inline constexpr std::chrono::seconds kSoon{10};

inline TransportConfig smallConfig(std::uint64_t buffer = 100, int buffers = 2) {
  TransportConfig config;
  config.kind = TransportKind::kTcp;
  config.buffer = buffer;
  config.buffers = buffers;
  return config;
}

inline PlaneEngine engineNamed(const std::string& name, int workers = 1, std::string group = "") {
  return {name, workers, std::move(group), "http://127.0.0.1:8000"};
}

/// One tensor with its memory.
struct Sample {
  TensorSpec spec;
  std::string bytes;

  [[nodiscard]] TensorView view() const {
    TensorView view;
    view.name = spec.name;
    view.dtype = spec.dtype;
    view.shape = spec.shape;
    view.data = bytes.data();
    return view;
  }
};

inline Sample sampleOf(const std::string& name, std::int64_t size) {
  Sample sample{{name, DType::kUint8, {size}, 0},
                std::string(static_cast<std::size_t>(size), '\0')};
  std::uint32_t state = static_cast<std::uint32_t>(std::hash<std::string>()(name)) | 1U;
  for (std::size_t i = 0; i < std::min<std::size_t>(sample.bytes.size(), 65536); ++i) {
    state = state * 1664525U + 1013904223U;
    sample.bytes[i] = static_cast<char>(state >> 24U);
  }
  return sample;
}

inline Manifest manifestOf(const std::vector<Sample>& samples) {
  Manifest manifest;
  for (const Sample& sample : samples) {
    manifest.tensors.push_back(sample.spec);
  }
  return manifest;
}

/// begin, every put, flush.
inline Status pushAll(DataPlane& plane, const std::vector<Sample>& samples) {
  Status status = plane.begin(manifestOf(samples));
  for (const Sample& sample : samples) {
    if (status.ok()) {
      status = plane.put(sample.spec, sample.view(), in(kSoon));
    }
  }
  return status.ok() ? plane.flush(in(kSoon)) : status;
}

/// An announced and opened channel with all its workers, in rank order per engine.
struct OpenChannel {
  std::unique_ptr<TcpPlane> plane;
  std::vector<std::string> infos;
  std::vector<TcpReceiver> workers;
};

inline void joinAll(OpenChannel& channel, const std::vector<PlaneEngine>& engines) {
  ChannelSpec spec;
  spec.engines = engines;
  auto infos = channel.plane->announce(spec);
  ASSERT_TRUE(infos.ok()) << infos.status().message();
  channel.infos = *infos;
  channel.workers.clear();
  for (std::size_t i = 0; i < engines.size(); ++i) {
    const InitInfo info = InitInfo::parse(channel.infos[i]);
    for (int worker = 0; worker < engines[i].workers; ++worker) {
      channel.workers.push_back(TcpReceiver::connectTo(info));
      ASSERT_EQ(channel.workers.back().hello(info.channel,
                                             info.rankOffset + static_cast<std::uint32_t>(worker)),
                0);
    }
  }
  ASSERT_TRUE(channel.plane->open(in(kSoon)).ok());
}

inline OpenChannel openChannel(const TransportConfig& config,
                               const std::vector<PlaneEngine>& engines,
                               Duration progress = std::chrono::seconds(60)) {
  OpenChannel channel;
  channel.plane = std::make_unique<TcpPlane>(config, progress);
  joinAll(channel, engines);
  return channel;
}

}  // namespace pushrod::transports::tcp
