// SPDX-License-Identifier: Apache-2.0
#include "tools/sources/safetensors.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace pushrod::tools {
namespace {

constexpr std::uint64_t kLengthBytes = 8;

std::string errnoText(int error) {
  return std::generic_category().message(error);
}

bool sameStamp(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::string path, int fd, const struct stat& stamp)
    : path_(std::move(path)), fd_(fd), stamp_(stamp) {}

SafetensorsFile::~SafetensorsFile() {
  ::close(fd_);
}

Result<std::unique_ptr<SafetensorsFile>> SafetensorsFile::open(const std::string& path) {
  // Non-blocking, so that a pipe of that name does not hold us up; no effect on regular files.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return Status(Code::kInvalidArgument, path + ": cannot be opened: " + errnoText(errno));
  }
  struct stat stamp = {};
  const bool known = ::fstat(fd, &stamp) == 0;
  std::unique_ptr<SafetensorsFile> file(new SafetensorsFile(path, fd, stamp));
  if (!known || !S_ISREG(stamp.st_mode)) {
    return Status(Code::kInvalidArgument, path + ": is not a regular file");
  }
  const Status header = file->readHeader();
  if (!header) {
    return header.prefixed(path);
  }
  return file;
}

Status SafetensorsFile::readHeader() {
  const auto fileBytes = static_cast<std::uint64_t>(stamp_.st_size);
  if (fileBytes < kLengthBytes) {
    return {Code::kInvalidArgument,
            "has " + std::to_string(fileBytes) +
                " bytes, too few for a safetensors file; save or download it again"};
  }
  std::array<std::byte, kLengthBytes> prefix{};
  Status length = readAt(0, prefix);
  if (!length) {
    return length;
  }
  std::uint64_t headerBytes = 0;
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    headerBytes |= std::to_integer<std::uint64_t>(prefix[i]) << (8 * i);
  }
  if (headerBytes > kMaxHeaderBytes) {
    return {Code::kInvalidArgument,
            "declares a header of " + std::to_string(headerBytes) + " bytes, more than the " +
                std::to_string(kMaxHeaderBytes) + " allowed; it is no safetensors file or damaged"};
  }
  if (headerBytes > fileBytes - kLengthBytes) {
    return {Code::kInvalidArgument,
            "declares a header of " + std::to_string(headerBytes) + " bytes but has only " +
                std::to_string(fileBytes) +
                " bytes in all; it is cut off or damaged: save or download it again"};
  }
  std::string header(headerBytes, '\0');
  Status text = readAt(kLengthBytes, std::as_writable_bytes(std::span(header)));
  if (!text) {
    return text;
  }
  dataBegin_ = kLengthBytes + headerBytes;
  Result<std::vector<StoredTensor>> tensors =
      parseSafetensorsHeader(header, fileBytes - dataBegin_);
  if (!tensors) {
    return tensors.status();
  }
  tensors_ = std::move(*tensors);
  return {};
}

Status SafetensorsFile::readAt(std::uint64_t position, std::span<std::byte> into) const {
  // Linux moves at most 2 GiB in one call; a smaller step also keeps each call short.
  constexpr std::size_t kStep = std::size_t{64} << 20;
  while (!into.empty()) {
    const std::size_t wanted = std::min(into.size(), kStep);
    const ssize_t got = ::pread(fd_, into.data(), wanted, static_cast<off_t>(position));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return {Code::kUnavailable, "cannot be read: " + errnoText(errno)};
    }
    if (got == 0) {
      return {Code::kDataMismatch,
              "ended at byte " + std::to_string(position) +
                  ", before its declared end; it was cut off while in use"};
    }
    into = into.subspan(static_cast<std::size_t>(got));
    position += static_cast<std::uint64_t>(got);
  }
  return {};
}

Status SafetensorsFile::read(const StoredTensor& tensor,
                             std::uint64_t from,
                             std::span<std::byte> into) const {
  if (from > tensor.bytes || into.size() > tensor.bytes - from) {
    return {Code::kInternal, path_ + ": a read beyond tensor " + tensor.name};
  }
  const Status read = readAt(dataBegin_ + tensor.offset + from, into);
  return read ? read : read.prefixed(path_ + ": tensor " + tensor.name);
}

Status SafetensorsFile::checkUnchanged() const {
  struct stat opened = {};
  struct stat named = {};
  if (::fstat(fd_, &opened) != 0) {
    return {Code::kUnavailable, path_ + ": its state cannot be read: " + errnoText(errno)};
  }
  if (::stat(path_.c_str(), &named) != 0) {
    return {Code::kDataMismatch, path_ + ": was removed while in use: " + errnoText(errno)};
  }
  if (!sameStamp(opened, stamp_) || !sameStamp(named, stamp_)) {
    return {Code::kDataMismatch,
            path_ + ": changed while in use; push again when the checkpoint is complete"};
  }
  return {};
}

}  // namespace pushrod::tools
