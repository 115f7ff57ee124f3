// SPDX-License-Identifier: Apache-2.0
// The shm plane to seven receiving processes against Gloo's broadcast of the same bytes among eight
// processes over loopback TCP, chunk by chunk. Both arms run in turns in the same processes; each
// receiver ends with every chunk in its own memory. Usage: bench_shm_push [LAYERS [ROUNDS
// [BUFFER_MIB]]].
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "bench/measure.h"
#include "bench/model.h"
#include "transports/chunk_plan.h"
#include "transports/shm/plane.h"

namespace pushrod::bench {
namespace {

using transports::Chunk;
using transports::shm::segmentName;
using transports::shm::ShmOptions;
using transports::shm::ShmPlane;

constexpr int kReceivers = 7;
constexpr std::chrono::seconds kLimit{60};

Deadline limit() {
  return Deadline::at(std::chrono::steady_clock::now() + kLimit);
}

/// What the sender tells a receiver to do next.
struct Order {
  enum class Kind : std::uint8_t { kBroadcasts, kChunk };
  Kind kind = Kind::kBroadcasts;
  std::uint32_t chunk = 0;
  std::uint64_t offset = 0;
};

/// A receiver's answer to an order.
struct Answer {
  std::uint8_t receiver = 0;
  bool good = false;
};

/// Gloo as it comes, over loopback, of this process and its seven siblings.
class Broadcasts {
 public:
  Broadcasts(int rank, const std::string& folder)
      : context_(std::make_shared<gloo::rendezvous::Context>(rank, kReceivers + 1)) {
    gloo::rendezvous::FileStore store(folder);
    gloo::transport::tcp::attr attributes("127.0.0.1");
    attributes.ai_family = AF_INET;
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    context_->setTimeout(std::chrono::duration_cast<std::chrono::milliseconds>(kLimit));
    context_->connectFullMesh(store, device);
  }

  void run(std::byte* bytes, std::size_t size, std::uint32_t tag) {
    gloo::BroadcastOptions options(context_);
    options.setOutput(reinterpret_cast<std::uint8_t*>(bytes), size);
    options.setRoot(0);
    options.setTag(tag);
    gloo::broadcast(options);
  }

 private:
  std::shared_ptr<gloo::rendezvous::Context> context_;
};

/// What both sides know of the work.
struct Work {
  const Model& model;
  std::vector<Chunk> chunks;
  std::uint64_t buffer;
  std::string segment;
  std::string folder;

  /// Where a chunk's bytes begin in a receiver's memory.
  [[nodiscard]] std::size_t place(std::size_t index) const {
    std::size_t at = 0;
    for (std::size_t i = 0; i < index; ++i) {
      at += chunks[i].bytes;
    }
    return at;
  }

  /// Whether a packed chunk begins and ends as its tensors do.
  [[nodiscard]] bool packedWell(std::size_t index, const std::byte* bytes) const {
    const Chunk& chunk = chunks[index];
    const std::size_t first = index == 0 ? 0 : chunks[index - 1].end;
    const TensorSpec& last = model.manifest.tensors[chunk.end - 1];
    const auto* tail = static_cast<const std::byte*>(model.views[chunk.end - 1].data);
    constexpr std::size_t kWord = 8;
    return std::memcmp(bytes, model.views[first].data, kWord) == 0 &&
           std::memcmp(bytes + chunk.bytes - kWord, tail + last.bytes() - kWord, kWord) == 0;
  }
};

/// The sender's segment in a receiver's memory. Its pages are mapped once, not for every chunk; a
/// segment made anew under the same name is noticed.
class Mapped {
 public:
  /// Null: there is no such segment.
  const std::byte* find(const std::string& name) {
    const int fd = ::shm_open(name.c_str(), O_RDONLY | O_CLOEXEC, 0);

    struct stat found {};

    if (fd < 0 || ::fstat(fd, &found) != 0) {
      return nullptr;
    }
    if (data_ == nullptr || found.st_ino != inode_) {
      const auto size = static_cast<std::size_t>(found.st_size);
      void* memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
      data_ = memory == MAP_FAILED ? nullptr : static_cast<const std::byte*>(memory);
      inode_ = found.st_ino;
    }
    ::close(fd);
    return data_;
  }

 private:
  const std::byte* data_ = nullptr;
  ino_t inode_ = 0;
};

bool copyOut(const Work& work, const Order& order, Mapped& mapped, std::byte* weights) {
  const std::byte* segment = mapped.find(work.segment);
  if (segment == nullptr) {
    return false;
  }
  std::byte* into = weights + work.place(order.chunk);
  std::memcpy(into, segment + order.offset, work.chunks[order.chunk].bytes);
  return work.packedWell(order.chunk, into);
}

/// All broadcasts of one pass, on the receiving side.
bool receiveAll(const Work& work, Broadcasts& broadcasts, std::byte* weights) {
  for (std::size_t i = 0; i < work.chunks.size(); ++i) {
    broadcasts.run(weights + work.place(i), work.chunks[i].bytes, static_cast<std::uint32_t>(i));
  }
  return std::memcmp(weights + work.model.bytes - 8, work.model.memory + work.model.bytes - 8, 8) ==
         0;
}

/// The receiving process: obeys until its orders end.
int receive(const Work& work, int receiver, int orders, int answers) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Broadcasts broadcasts(receiver + 1, work.folder);
  std::byte* weights = touchedMemory(work.model.bytes);
  Mapped mapped;
  for (Order order; ::read(orders, &order, sizeof order) == sizeof order;) {
    Answer answer;
    answer.receiver = static_cast<std::uint8_t>(receiver);
    answer.good = order.kind == Order::Kind::kChunk ? copyOut(work, order, mapped, weights)
                                                    : receiveAll(work, broadcasts, weights);
    if (::write(answers, &answer, sizeof answer) != sizeof answer) {
      return 1;
    }
  }
  return 0;
}

class Bench {
 public:
  explicit Bench(const Work& work) : work_(work) {
    if (::pipe(answers_.data()) != 0) {
      std::abort();
    }
    for (int receiver = 0; receiver < kReceivers; ++receiver) {
      start(receiver);
    }
    ::close(answers_[1]);
    broadcasts_ = std::make_unique<Broadcasts>(0, work.folder);
  }

  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  ~Bench() {
    for (const int orders : orders_) {
      ::close(orders);
    }
    for (const pid_t child : children_) {
      ::waitpid(child, nullptr, 0);
    }
  }

  [[nodiscard]] double childCpu() const {
    double ticks = 0;
    for (const pid_t child : children_) {
      std::ifstream in("/proc/" + std::to_string(child) + "/stat");
      std::string field;
      for (int i = 1; i <= 15 && in >> field; ++i) {
        ticks += i >= 14 ? std::strtod(field.c_str(), nullptr) : 0;
      }
    }
    return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

  bool broadcastAll() {
    tell({Order::Kind::kBroadcasts, 0, 0});
    for (std::size_t i = 0; i < work_.chunks.size(); ++i) {
      broadcasts_->run(work_.model.memory + work_.place(i),
                       work_.chunks[i].bytes,
                       static_cast<std::uint32_t>(i));
    }
    return hear(nullptr, 1);
  }

  /// Makes the plane and its segment; false: it cannot be made.
  bool prepare(const std::string& job) {
    ShmOptions options;
    options.job = job;
    options.transport.buffer = work_.buffer;
    options.takes = [](const std::string& /*engine*/) { return true; };
    options.hostIds = [] { return std::vector<std::string>{"host"}; };
    plane_ = std::make_unique<ShmPlane>(options);
    ChannelSpec spec;
    for (int receiver = 0; receiver < kReceivers; ++receiver) {
      names_.push_back("e" + std::to_string(receiver));
      spec.engines.push_back({names_.back(), 1, "", "http://127.0.0.1:1"});
    }
    const auto planned = plane_->announce(spec).ok() && plane_->open(limit()).ok();
    layout_ = transports::shm::Layout::of(work_.chunks, options.transport.buffers);
    return planned && plane_->plan(work_.model.manifest).ok() &&
           plane_->prepare(work_.model.manifest, kUnique).ok();
  }

  bool push() {
    plane_->expect(names_);
    if (!plane_->begin(work_.model.manifest).ok()) {
      return false;
    }
    bool heard = false;
    std::thread control([&] { heard = hear(plane_.get(), work_.chunks.size()); });
    bool good = true;
    std::size_t tensor = 0;
    for (std::uint32_t chunk = 0; chunk < work_.chunks.size(); ++chunk) {
      for (; tensor < work_.chunks[chunk].end; ++tensor) {
        good = good &&
               plane_->put(work_.model.manifest.tensors[tensor], work_.model.views[tensor], limit())
                   .ok();
      }
      tell({Order::Kind::kChunk, chunk, layout_.offset(chunk)});
    }
    good = good && plane_->flush(limit()).ok();
    control.join();
    return good && heard;
  }

  static constexpr const char* kUnique = "0123456789abcdef";

 private:
  void start(int receiver) {
    std::array<int, 2> orders{};
    if (::pipe(orders.data()) != 0) {
      std::abort();
    }
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(orders[1]);
      ::close(answers_[0]);
      for (const int other : orders_) {
        ::close(other);
      }
      int code = 1;
      try {
        code = receive(work_, receiver, orders[0], answers_[1]);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "receiver %d: %s\n", receiver, error.what());
      }
      ::_exit(code);
    }
    ::close(orders[0]);
    orders_.push_back(orders[1]);
    children_.push_back(child);
  }

  void tell(const Order& order) const {
    for (const int orders : orders_) {
      if (::write(orders, &order, sizeof order) != sizeof order) {
        std::abort();
      }
    }
  }

  /// Waits until every receiver has answered `each` orders, and tells the plane of it.
  bool hear(ShmPlane* plane, std::size_t each) const {
    std::array<std::size_t, kReceivers> heard{};
    for (std::size_t i = 0; i < each * kReceivers; ++i) {
      Answer answer;
      if (::read(answers_[0], &answer, sizeof answer) != sizeof answer || !answer.good) {
        return false;
      }
      ++heard[answer.receiver];
      if (plane != nullptr) {
        plane->answered(names_[answer.receiver], heard[answer.receiver]);
      }
    }
    return true;
  }

  const Work& work_;
  std::array<int, 2> answers_{};
  std::vector<int> orders_;
  std::vector<pid_t> children_;
  std::vector<std::string> names_;
  std::unique_ptr<Broadcasts> broadcasts_;
  std::unique_ptr<ShmPlane> plane_;
  transports::shm::Layout layout_;
};

/// The layers of the model only: over shm no tensor may be larger than the buffer.
Manifest layersOf(int layers) {
  Manifest manifest = qwenLike(layers, DType::kBfloat16);
  manifest.tensors.erase(manifest.tensors.begin());
  return manifest;
}

Verdict measure(int layers, int rounds, std::uint64_t buffer) {
  const Model model(layersOf(layers));
  const TemporaryFolder folder;
  const std::string job = "bench-" + std::to_string(::getpid());
  Work work{model, {}, buffer, segmentName(job, Bench::kUnique, 0), folder.path()};
  const auto chunks = transports::chunksWithin(model.manifest, buffer);
  if (!chunks.ok()) {
    std::fprintf(stderr, "%s\n", chunks.status().message().c_str());
    return Verdict::kFail;
  }
  work.chunks = *chunks;
  std::printf("%zu tensors, %.2f GB bfloat16, %zu chunks\n",
              model.views.size(),
              static_cast<double>(model.bytes) / 1e9,
              work.chunks.size());
  Bench bench(work);
  if (!bench.prepare(job)) {
    return Verdict::kFail;
  }
  return compare({{"gloo broadcast", [&] { return bench.broadcastAll(); }},
                  {"shm plane", [&] { return bench.push(); }}},
                 {{1, 0, 4.0}},
                 static_cast<double>(model.bytes) / 1e9,
                 rounds,
                 [&] { return bench.childCpu(); });
}

}  // namespace
}  // namespace pushrod::bench

int main(int argc, char** argv) {
  const int layers = argc > 1 ? std::atoi(argv[1]) : 8;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 9;
  const int mib = argc > 3 ? std::atoi(argv[3]) : 16;
  if (layers < 1 || rounds < 1 || mib < 1) {
    std::fprintf(stderr, "usage: %s [LAYERS [ROUNDS [BUFFER_MIB]]]\n", argv[0]);
    return 2;
  }
  try {
    return static_cast<int>(
        pushrod::bench::measure(layers, rounds, static_cast<std::uint64_t>(mib) << 20U));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
