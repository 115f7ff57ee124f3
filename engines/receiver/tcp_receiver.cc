// SPDX-License-Identifier: Apache-2.0
#include "engines/receiver/tcp_receiver.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <xxhash.h>

#include "common/check.h"

namespace pushrod::engines::receiver {

namespace {

constexpr std::uint32_t kChunk = 1;
constexpr std::uint32_t kEnd = 2;
constexpr std::uint32_t kAbort = 3;
constexpr std::size_t kHello = 32;
constexpr std::size_t kHeader = 24;
constexpr std::uint64_t kMostReason = 4096;
/// What is read at once: it is still in the processor's cache when its digest is taken.
constexpr std::size_t kPiece = std::size_t{256} << 10U;
constexpr Duration kJoinLimit = std::chrono::seconds(300);

template <typename T>
void putLittle(std::uint8_t* at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    at[i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

template <typename T>
T getLittle(const std::uint8_t* at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | (static_cast<T>(at[i]) << (8 * i)));
  }
  return value;
}

using DigestState = std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)>;

DigestState newDigest() {
  DigestState state(XXH3_createState(), &XXH3_freeState);
  PUSHROD_CHECK(state != nullptr);
  XXH3_64bits_reset(state.get());
  return state;
}

Status mismatch(std::string text) {
  return {Code::kDataMismatch, std::move(text)};
}

std::string refusal(std::uint8_t code) {
  constexpr std::array<std::string_view, 4> kTexts = {
      "accepted", "unknown channel", "rank out of range or taken", "the source is closing"};
  return code < kTexts.size() ? std::string(kTexts.at(code)) : "code " + std::to_string(code);
}

}  // namespace

Status TcpReceiver::join(const TcpInit& init, std::uint32_t rank) {
  close();
  for (const TcpSource& source : init.sources) {
    if (Status joined = joinSource(source, init, rank); !joined.ok()) {
      close();
      return joined.prefixed("source " + std::to_string(source.src) + " at " + source.address +
                             ":" + std::to_string(source.port));
    }
  }
  bufferBytes_ = init.bufferBytes;
  return {};
}

Status TcpReceiver::joinSource(const TcpSource& source, const TcpInit& init, std::uint32_t rank) {
  const Deadline deadline = Deadline::after(SteadyClock(), kJoinLimit);
  Socket socket(stop_);
  if (Status connected = socket.connect(source.address, source.port, deadline); !connected.ok()) {
    return connected;
  }
  std::array<std::uint8_t, kHello> hello{};
  std::memcpy(hello.data(), "PUSHROD1", 8);
  std::copy(init.channel.begin(), init.channel.end(), hello.begin() + 8);
  putLittle<std::uint32_t>(hello.data() + 24, rank);
  if (Status sent = socket.write(hello.data(), hello.size(), deadline); !sent.ok()) {
    return sent;
  }
  std::uint8_t answer = 0;
  if (Status got = socket.read(&answer, 1, deadline); !got.ok()) {
    return got;
  }
  if (answer != 0) {
    return {Code::kUnavailable, "rank " + std::to_string(rank) + " refused: " + refusal(answer)};
  }
  sockets_.push_back(std::move(socket));
  open_ = static_cast<int>(sockets_.size());
  return {};
}

void TcpReceiver::close() {
  sockets_.clear();
  open_ = 0;
}

Status TcpReceiver::receive(const TcpUpdate& update, Sink& sink) {
  if (update.src >= static_cast<int>(sockets_.size())) {
    close();
    return mismatch("src " + std::to_string(update.src) + " is not a source of this channel");
  }
  Socket& socket = sockets_[static_cast<std::size_t>(update.src)];
  Status done = receiveAll(socket, update, sink);
  if (!done.ok()) {
    close();
    return done.prefixed("update from source " + std::to_string(update.src));
  }
  return done;
}

Status TcpReceiver::receiveAll(Socket& socket, const TcpUpdate& update, Sink& sink) {
  const std::span<const TensorSpec> tensors(update.tensors);
  const std::vector<ChunkPlan> plans = cutChunks(update.tensors, bufferBytes_);
  const Sink::WaitGone gone = [&socket] { return socket.waitClosed(); };
  std::uint32_t index = 0;
  for (const ChunkPlan& plan : plans) {
    if (Status going = sink.reached(index, false, gone); !going.ok()) {
      return going;
    }
    const auto chunk = tensors.subspan(plan.first, plan.count);
    if (Status got = readChunk(socket, chunk, index, plan.bytes, sink); !got.ok()) {
      return got;
    }
    ++index;
  }
  if (Status going = sink.reached(index, true, gone); !going.ok()) {
    return going;
  }
  if (Status ended = readEnd(socket, plans.size()); !ended.ok()) {
    return ended;
  }
  return sink.rest(tensors.subspan(plans.empty() ? 0 : plans.back().first + plans.back().count));
}

Status TcpReceiver::readEnd(Socket& socket, std::size_t chunks) {
  Frame frame;
  if (Status got = readFrame(socket, frame); !got.ok()) {
    return got;
  }
  if (frame.kind != kEnd) {
    return mismatch("frame kind " + std::to_string(frame.kind) + " where the end was due after " +
                    std::to_string(chunks) + " chunks");
  }
  if (frame.index != chunks || frame.length != 0) {
    return mismatch("end frame with index " + std::to_string(frame.index) + " and length " +
                    std::to_string(frame.length) + ", expected index " + std::to_string(chunks) +
                    " and length 0");
  }
  return {};
}

Status TcpReceiver::readFrame(Socket& socket, Frame& frame) {
  std::array<std::uint8_t, kHeader> raw{};
  if (Status got = socket.read(raw.data(), raw.size(), Deadline::never()); !got.ok()) {
    return got.prefixed("frame header");
  }
  frame.kind = getLittle<std::uint32_t>(raw.data());
  frame.index = getLittle<std::uint32_t>(raw.data() + 4);
  frame.length = getLittle<std::uint64_t>(raw.data() + 8);
  frame.digest = getLittle<std::uint64_t>(raw.data() + 16);
  if (frame.kind == kAbort) {
    return readAbort(socket, frame);
  }
  if (frame.kind != kChunk && frame.kind != kEnd) {
    return mismatch("unknown frame kind " + std::to_string(frame.kind));
  }
  return {};
}

Status TcpReceiver::readAbort(Socket& socket, const Frame& frame) {
  if (frame.length > kMostReason) {
    return mismatch("abort frame with a reason of " + std::to_string(frame.length) +
                    " bytes, at most 4096 go");
  }
  std::string reason(static_cast<std::size_t>(frame.length), '\0');
  const Deadline deadline = Deadline::after(SteadyClock(), std::chrono::seconds(10));
  if (Status got = socket.read(reason.data(), reason.size(), deadline); !got.ok()) {
    return got.prefixed("abort frame");
  }
  return {Code::kAborted, "aborted by the source: " + reason};
}

Status TcpReceiver::readChunk(Socket& socket,
                              std::span<const TensorSpec> tensors,
                              std::uint32_t index,
                              std::uint64_t bytes,
                              Sink& sink) {
  Frame frame;
  if (Status got = readFrame(socket, frame); !got.ok()) {
    return got;
  }
  if (frame.kind == kEnd) {
    return mismatch("the update ended early, before chunk " + std::to_string(index));
  }
  if (frame.index != index) {
    return mismatch("chunk index " + std::to_string(frame.index) + ", expected " +
                    std::to_string(index));
  }
  if (frame.length != bytes) {
    return mismatch("chunk " + std::to_string(index) + " has " + std::to_string(frame.length) +
                    " bytes, the list and the buffer size make it " + std::to_string(bytes));
  }
  if (Status begun = sink.beginChunk(tensors); !begun.ok()) {
    return begun.prefixed("chunk " + std::to_string(index));
  }
  const DigestState digest = newDigest();
  for (const TensorSpec& spec : tensors) {
    Status got = readTensor(socket, spec, sink, frame.digest == 0 ? nullptr : digest.get());
    if (!got.ok()) {
      return got.prefixed("chunk " + std::to_string(index));
    }
  }
  if (frame.digest != 0 && XXH3_64bits_digest(digest.get()) != frame.digest) {
    return mismatch("chunk " + std::to_string(index) + " has another digest than its frame");
  }
  return sink.endChunk(index, bytes);
}

Status TcpReceiver::readTensor(Socket& socket,
                               const TensorSpec& spec,
                               Sink& sink,
                               XXH3_state_s* chunkDigest) {
  sink.beginTensor(spec);
  std::uint64_t left = spec.bytes();
  while (left > 0) {
    std::span<std::uint8_t> room = sink.room(left);
    room = room.first(std::min(room.size(), kPiece));
    if (Status got = socket.read(room.data(), room.size(), Deadline::never()); !got.ok()) {
      return got.prefixed("tensor " + spec.name);
    }
    if (chunkDigest != nullptr) {
      XXH3_64bits_update(chunkDigest, room.data(), room.size());
    }
    sink.took(room);
    left -= room.size();
  }
  return {};
}

}  // namespace pushrod::engines::receiver
