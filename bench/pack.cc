// SPDX-License-Identifier: Apache-2.0
// Packing against one memcpy of the same bytes: manifest check on, same source pages, same buffers.
// Usage: bench_pack [LAYERS [ROUNDS]].
#include "transports/pack.h"

#include <cstdio>
#include <cstdlib>
#include <span>
#include <xxhash.h>

#include "bench/measure.h"
#include "bench/model.h"
#include "transports/chunk_plan.h"
#include "transports/manifest_check.h"
#include "transports/tcp/digest.h"

namespace pushrod::bench {
namespace {

using transports::ManifestChecker;
using transports::PackedRule;
using transports::TensorReader;
using transports::tcp::ChunkDigest;

constexpr std::size_t kBuffers = 2;

/// Two packed buffers and the passes that fill them.
class Packer {
 public:
  Packer(const Model& model, const Manifest& declared, std::uint64_t buffer)
      : model_(model), declared_(declared), buffer_(buffer) {
    for (std::uint64_t bytes : transports::chunkBytes(declared, buffer)) {
      largest_ = std::max(largest_, bytes);
    }
    for (std::byte*& memory : memory_) {
      memory = touchedMemory(largest_);
    }
  }

  /// One memcpy per chunk of the same sizes, from the same pages; then a digest if asked for.
  bool copyChunks(bool digest) {
    const std::size_t source = model_.bytes;
    std::size_t at = 0;
    std::size_t chunk = 0;
    const double scale = static_cast<double>(source) / static_cast<double>(declared_.bytes());
    for (const std::uint64_t bytes : transports::chunkBytes(declared_, buffer_)) {
      const auto part =
          std::min(source - at, static_cast<std::size_t>(static_cast<double>(bytes) * scale));
      std::byte* to = memory_[chunk++ % kBuffers];
      for (std::size_t done = 0; done < part; done += largest_) {
        std::memcpy(to, model_.memory + at + done, std::min<std::size_t>(largest_, part - done));
      }
      at += part;
      if (digest) {
        sink_ = sink_ + XXH3_64bits(to, bytes);
      }
    }
    return true;
  }

  bool pack(bool digest) {
    ManifestChecker checker(declared_, DtypeMismatch::kCast);
    PackedRule rule(buffer_);
    std::size_t chunk = 0;
    std::size_t at = 0;
    digest_.reset();
    for (std::size_t i = 0; i < model_.views.size(); ++i) {
      if (!checker.check(i, model_.views[i]).ok()) {
        return false;
      }
      TensorReader reader(model_.views[i], declared_.tensors[i].dtype);
      while (reader.remaining() != 0) {
        const std::size_t piece = reader.goodPiece(digest);
        const std::span<std::byte> room(memory_[chunk % kBuffers] + at,
                                        std::min<std::size_t>(piece, largest_ - at));
        const std::size_t got = reader.read(room);
        if (digest) {
          digest_.add(room.first(got));
        }
        at += got;
      }
      if (rule.add(declared_.tensors[i].bytes())) {
        sink_ = sink_ + (digest ? digest_.value() : 0);
        digest_.reset();
        ++chunk;
        at = 0;
      }
    }
    sink_ = sink_ + (digest && rule.open() != 0 ? digest_.value() : 0);
    return checker.end(model_.views.size()).ok();
  }

  /// Whether packed chunks hold the tensors' bytes, by the digests of both; without a cast.
  bool verify() {
    sink_ = 0;
    const bool packed = pack(true);
    PackedRule rule(buffer_);
    std::uint64_t expected = 0;
    digest_.reset();
    for (std::size_t i = 0; i < model_.views.size(); ++i) {
      const std::uint64_t bytes = declared_.tensors[i].bytes();
      digest_.add({static_cast<const std::byte*>(model_.views[i].data), bytes});
      if (rule.add(bytes)) {
        expected += digest_.value();
        digest_.reset();
      }
    }
    expected += rule.open() != 0 ? digest_.value() : 0;
    return packed && sink_ == expected;
  }

 private:
  const Model& model_;
  const Manifest& declared_;
  std::uint64_t buffer_;
  std::uint64_t largest_ = 0;
  std::byte* memory_[kBuffers] = {};
  ChunkDigest digest_;
  volatile std::uint64_t sink_ = 0;
};

int run(int layers, int rounds) {
  const auto none = [] { return 0.0; };
  Verdict verdict = Verdict::kPass;
  const Model model(qwenLike(layers, DType::kBfloat16));
  const double gigabytes = static_cast<double>(model.bytes) / 1e9;
  for (const std::uint64_t mib : {4ULL, 64ULL}) {
    std::printf("\n%zu tensors, %.2f GB bfloat16, buffer %llu MiB\n",
                model.views.size(),
                gigabytes,
                static_cast<unsigned long long>(mib));
    Packer packer(model, model.manifest, mib << 20U);
    const std::vector<Arm> arms = {{"memcpy", [&] { return packer.copyChunks(false); }},
                                   {"pack", [&] { return packer.pack(false); }},
                                   {"memcpy, then xxh3", [&] { return packer.copyChunks(true); }},
                                   {"pack with digest", [&] { return packer.pack(true); }}};
    verdict = worse(verdict, compare(arms, {{1, 0, 0.95}, {3, 2, 1.0}}, gigabytes, rounds, none));
  }
  {
    const Model wide(qwenLike(layers / 2, DType::kFloat32));
    const Manifest declared = qwenLike(layers / 2, DType::kBfloat16);
    const double wideGigabytes = static_cast<double>(wide.bytes) / 1e9;
    std::printf("\ncast float32 to bfloat16, %.2f GB of float32\n", wideGigabytes);
    Packer packer(wide, declared, std::uint64_t{64} << 20U);
    const std::vector<Arm> arms = {
        {"memcpy of the float32 bytes", [&] { return packer.copyChunks(false); }},
        {"pack with cast", [&] { return packer.pack(false); }}};
    verdict = worse(verdict, compare(arms, {{1, 0, 1.0}}, wideGigabytes, rounds, none));
  }
  return static_cast<int>(verdict);
}

}  // namespace
}  // namespace pushrod::bench

int main(int argc, char** argv) {
  const int layers = argc > 1 ? std::atoi(argv[1]) : 28;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  if (layers < 2 || rounds < 1) {
    std::fprintf(stderr, "usage: %s [LAYERS [ROUNDS]]\n", argv[0]);
    return 2;
  }
  return pushrod::bench::run(layers, rounds);
}
