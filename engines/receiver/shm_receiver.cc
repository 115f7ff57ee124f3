// SPDX-License-Identifier: Apache-2.0
#include "engines/receiver/shm_receiver.h"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace pushrod::engines::receiver {

namespace {

/// How often a worker that reads nothing looks whether the sender is still there.
constexpr int kLookMilliseconds = 100;

Status mismatch(std::string text) {
  return {Code::kDataMismatch, std::move(text)};
}

Status failed(const std::string& what) {
  return {Code::kUnavailable, what + ": " + std::generic_category().message(errno)};
}

/// A part of a segment in this process's memory, read-only, while it lives.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  ~Mapping() {
    if (memory_ != nullptr) {
      ::munmap(memory_, length_);
    }
  }

  Status map(const ShmSegment& segment) {
    const int fd = ::shm_open(segment.name.c_str(), O_RDONLY, 0);
    if (fd < 0) {
      return failed("segment " + segment.name + " cannot be opened");
    }
    const Status mapped = mapOpen(fd, segment);
    ::close(fd);
    return mapped;
  }

  [[nodiscard]] const std::uint8_t* data() const { return data_; }

 private:
  Status mapOpen(int fd, const ShmSegment& segment) {
    struct stat found {};

    if (::fstat(fd, &found) != 0) {
      return failed("segment " + segment.name + " cannot be examined");
    }
    // Beyond its end a mapping can be made, and kills who reads it.
    const auto size = static_cast<std::uint64_t>(found.st_size);
    if (segment.offset > size || segment.bytes > size - segment.offset) {
      return mismatch("segment " + segment.name + " has " + std::to_string(size) +
                      " bytes, the chunk is said to be " + std::to_string(segment.bytes) +
                      " bytes from " + std::to_string(segment.offset));
    }
    if (segment.bytes == 0) {
      return {};
    }
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t begin = segment.offset / page * page;
    length_ = segment.offset - begin + segment.bytes;
    void* memory = ::mmap(nullptr, length_, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(begin));
    if (memory == MAP_FAILED) {
      return failed("segment " + segment.name + " cannot be mapped");
    }
    memory_ = memory;
    data_ = static_cast<const std::uint8_t*>(memory) + (segment.offset - begin);
    return {};
  }

  void* memory_ = nullptr;
  std::uint64_t length_ = 0;
  const std::uint8_t* data_ = nullptr;
};

bool exists(const ShmSegment& segment) {
  const int fd = ::shm_open(segment.name.c_str(), O_RDONLY, 0);
  if (fd >= 0) {
    ::close(fd);
  }
  return fd >= 0;
}

}  // namespace

Status ShmReceiver::waitGone(const ShmSegment& segment) const {
  pollfd stop{stop_.descriptor(), POLLIN, 0};
  while (exists(segment) && ::poll(&stop, 1, kLookMilliseconds) <= 0) {
  }
  return {Code::kUnavailable, "the source removed its segment"};
}

Status ShmReceiver::receive(const ShmUpdate& update, Sink& sink) {
  const auto own = update.segments.find(hostId_);
  if (own == update.segments.end()) {
    std::string offered;
    for (const auto& entry : update.segments) {
      offered += (offered.empty() ? "" : ", ") + entry.first;
    }
    return {Code::kFailedPrecondition,
            "no shared memory segment for host " + hostId_ + "; offered: " + offered};
  }
  const Sink::WaitGone gone = [&] { return waitGone(own->second); };
  if (Status going = sink.reached(index_, false, gone); !going.ok()) {
    return going;
  }
  const Status done = readChunk(update, own->second, sink);
  ++index_;
  return done;
}

Status ShmReceiver::readChunk(const ShmUpdate& update,
                              const ShmSegment& segment,
                              Sink& sink) const {
  const std::string what = "chunk " + std::to_string(index_);
  Mapping mapping;
  if (Status mapped = mapping.map(segment); !mapped.ok()) {
    return mapped.prefixed(what);
  }
  if (Status begun = sink.beginChunk(update.tensors); !begun.ok()) {
    return begun.prefixed(what);
  }
  const std::uint8_t* at = mapping.data();
  for (const TensorSpec& spec : update.tensors) {
    sink.beginTensor(spec);
    if (const std::uint64_t bytes = spec.bytes(); bytes > 0) {
      sink.took({at, static_cast<std::size_t>(bytes)});
      at += bytes;
    }
  }
  return sink.endChunk(index_, update.bytes);
}

}  // namespace pushrod::engines::receiver
