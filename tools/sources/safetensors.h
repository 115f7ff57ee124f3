// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

#include <pushrod/result.h>
#include <pushrod/tensor.h>

namespace pushrod::tools {

/// Longest JSON header that is read; the format's own libraries have about the same limit.
inline constexpr std::uint64_t kMaxHeaderBytes = std::uint64_t{100} << 20;

/// One tensor of a safetensors file.
struct StoredTensor {
  std::string name;
  DType dtype = DType::kBfloat16;
  Shape shape;
  std::uint64_t offset = 0;  ///< of its first byte, from the start of the tensors' bytes
  std::uint64_t bytes = 0;
};

/// Checks a safetensors JSON header against the number of bytes that follow it and returns its
/// tensors in the order of their bytes. Refused (invalidArgument, naming the tensor): bad JSON, a
/// name twice, unknown keys, dtypes that cannot travel, impossible shapes, ranges that do not match
/// the shape, overlap, leave a gap or lie beyond the file.
Result<std::vector<StoredTensor>> parseSafetensorsHeader(std::string_view header,
                                                         std::uint64_t dataBytes);

/// An open, validated safetensors file. Its bytes are read by pread, not mapped: a mapped file that
/// somebody cuts off ends the reader by SIGBUS, whereas a short pread is an error like any other,
/// and reading a rank's share of a tensor needs no more than one system call. Immutable after open;
/// safe to share between threads.
class SafetensorsFile {
 public:
  /// Opens a regular file and checks its header; messages begin with the path.
  static Result<std::unique_ptr<SafetensorsFile>> open(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  /// In the order of their bytes.
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }

  /// Reads bytes [from, from + into.size()) of a tensor's. A file that became shorter is
  /// dataMismatch, a failed read unavailable.
  Status read(const StoredTensor& tensor, std::uint64_t from, std::span<std::byte> into) const;
  /// Whether the path still names the file that was opened, with its size and time (ruling P43):
  /// dataMismatch when not.
  [[nodiscard]] Status checkUnchanged() const;

 private:
  SafetensorsFile(std::string path, int fd, const struct stat& stamp);

  Status readHeader();
  Status readAt(std::uint64_t position, std::span<std::byte> into) const;

  std::string path_;
  int fd_;
  struct stat stamp_;
  std::uint64_t dataBegin_ = 0;
  std::vector<StoredTensor> tensors_;
};

}  // namespace pushrod::tools
