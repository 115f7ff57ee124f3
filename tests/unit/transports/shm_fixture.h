// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <unistd.h>
#include <vector>

#include "transports/shm/plane.h"

namespace pushrod::transports::shm {

inline constexpr std::uint64_t kPage = 4096;

inline Deadline in(std::chrono::milliseconds limit) {
  return Deadline::at(std::chrono::steady_clock::now() + limit);
}

inline constexpr std::chrono::seconds kSoon{10};
inline constexpr std::chrono::milliseconds kShort{30};

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

/// Tensors of bytes, each filled with a letter of its own.
inline std::vector<Sample> samplesOf(const std::vector<std::int64_t>& sizes) {
  std::vector<Sample> samples;
  for (const std::int64_t size : sizes) {
    const char letter = static_cast<char>('a' + samples.size());
    samples.push_back({{std::string(1, letter), DType::kUint8, {size}, 0},
                       std::string(static_cast<std::size_t>(size), letter)});
  }
  return samples;
}

inline Manifest manifestOf(const std::vector<Sample>& samples) {
  Manifest manifest;
  for (const Sample& sample : samples) {
    manifest.tensors.push_back(sample.spec);
  }
  return manifest;
}

inline ShmOptions optionsOf(std::uint64_t buffer, int buffers = 2, int rank = 0) {
  ShmOptions options;
  options.job = "unit-" + std::to_string(::getpid());
  options.rank = rank;
  options.transport.buffer = buffer;
  options.transport.buffers = buffers;
  options.takes = [](const std::string& engine) { return engine == "e0" || engine == "e1"; };
  options.hostIds = [] { return std::vector<std::string>{"h0", "h1", "h0"}; };
  return options;
}

}  // namespace pushrod::transports::shm
