// SPDX-License-Identifier: Apache-2.0
#include "ranks/file_store.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <system_error>
#include <unistd.h>

#include "common/ids.h"

namespace pushrod::ranks {

namespace {

namespace fs = std::filesystem;

Status failed(const std::string& what, const fs::path& path, const std::string& why) {
  return Status(Code::kUnavailable,
                what + " " + path.string() + " of the ranks' file store failed: " + why +
                    "; all ranks need to read and write this folder");
}

/// A key's part as a file name: no dot at its start, nothing special inside.
std::string escaped(const std::string& part) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name;
  for (const char c : part) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    if (plain) {
      name.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    name.push_back('%');
    name.push_back(kDigits[byte >> 4U]);
    name.push_back(kDigits[byte & 0xFU]);
  }
  return name.empty() ? "%" : name;
}

std::string systemError(int number) {
  return std::error_code(number, std::generic_category()).message();
}

Status writeAll(const fs::path& path, const std::string& value) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) {
    return failed("creating", path, systemError(errno));
  }
  std::size_t done = 0;
  while (done < value.size()) {
    const ssize_t count = ::write(file, value.data() + done, value.size() - done);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      const int error = errno;
      ::close(file);
      return failed("writing", path, systemError(error));
    }
    done += static_cast<std::size_t>(count);
  }
  return ::close(file) == 0 ? Status() : failed("writing", path, systemError(errno));
}

Result<std::optional<std::string>> readAll(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ESTALE) {
      return std::optional<std::string>();
    }
    return failed("opening", path, systemError(errno));
  }
  std::string value(Store::kMaxValue, '\0');
  std::size_t done = 0;
  while (done < value.size()) {
    const ssize_t count = ::read(file, value.data() + done, value.size() - done);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      const int error = errno;
      ::close(file);
      return failed("reading", path, systemError(error));
    }
    if (count == 0) {
      break;
    }
    done += static_cast<std::size_t>(count);
  }
  ::close(file);
  value.resize(done);
  return std::optional<std::string>(std::move(value));
}

}  // namespace

Result<std::unique_ptr<Store>> FileStore::open(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return failed("creating folder", folder, error.message());
  }
  return std::unique_ptr<Store>(std::make_unique<FileStore>(folder));
}

fs::path FileStore::fileOf(const std::string& key) const {
  fs::path path = folder_;
  std::size_t begin = 0;
  while (begin <= key.size()) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    path /= escaped(key.substr(begin, end - begin));
    begin = end + 1;
  }
  return path;
}

Status FileStore::set(const std::string& key, const std::string& value, Deadline /*deadline*/) {
  const fs::path path = fileOf(key);
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) {
    return failed("creating folder", path.parent_path(), error.message());
  }
  std::string name = ".";
  name += common::toHex(common::randomId());
  const fs::path fresh = path.parent_path() / name;
  const Status written = writeAll(fresh, value);
  if (!written) {
    return written;
  }
  fs::rename(fresh, path, error);
  if (error) {
    return failed("renaming to", path, error.message());
  }
  return Status();
}

Result<std::vector<std::optional<std::string>>> FileStore::get(const std::vector<std::string>& keys,
                                                               Deadline /*deadline*/) {
  std::vector<std::optional<std::string>> values;
  values.reserve(keys.size());
  for (const std::string& key : keys) {
    auto value = readAll(fileOf(key));
    if (!value) {
      return value.status();
    }
    values.push_back(std::move(*value));
  }
  return values;
}

Status FileStore::erase(const std::vector<std::string>& keys, Deadline /*deadline*/) {
  for (const std::string& key : keys) {
    std::error_code ignored;
    fs::remove(fileOf(key), ignored);
  }
  return Status();
}

Status FileStore::eraseBelow(const std::string& prefix, Deadline /*deadline*/) {
  const fs::path path = fileOf(prefix);
  // A rank that starts at the same time may write below it; what it writes now goes as well.
  constexpr int kTries = 10;
  std::error_code error;
  for (int i = 0; i < kTries; ++i) {
    error.clear();
    fs::remove_all(path, error);
    if (error != std::errc::directory_not_empty) {
      break;
    }
  }
  return error ? failed("removing", path, error.message()) : Status();
}

}  // namespace pushrod::ranks
