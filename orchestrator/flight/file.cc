// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/flight/file.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "common/time_text.h"

namespace pushrod::orchestrator {

namespace {

namespace fs = std::filesystem;
constexpr std::string_view kEnding = ".jsonl";

Status unwritable(const std::string& path, const std::error_code& error) {
  return {Code::kUnavailable, path + ": cannot be written: " + error.message()};
}

std::error_code lastError() {
  return {errno, std::generic_category()};
}

/// "20260131T120000.123Z".
std::string compactUtc() {
  std::string text = common::utcText(std::chrono::system_clock::now());
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text;
}

/// Whether `name` is of this job, and not of one whose name goes on behind the same letters.
bool isFlight(std::string_view name, std::string_view prefix) {
  // One letter for each of the time's; a digit is '0'.
  constexpr std::string_view kTime = "00000000T000000.000Z-";
  if (!name.starts_with(prefix) || !name.ends_with(kEnding)) {
    return false;
  }
  name.remove_prefix(prefix.size());
  name.remove_suffix(std::min(name.size(), kEnding.size()));
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t i = 0; i < kTime.size(); ++i) {
    if (i >= name.size() || (kTime[i] == '0' ? !digit(name[i]) : name[i] != kTime[i])) {
      return false;
    }
  }
  name.remove_prefix(kTime.size());
  return !name.empty() && std::all_of(name.begin(), name.end(), digit);
}

void removeOldest(const std::string& folder, std::string_view prefix) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (isFlight(name, prefix)) {
      names.push_back(std::move(name));
    }
  }
  // The time comes first in what follows the prefix, so names sort by age.
  std::sort(names.begin(), names.end());
  for (std::size_t i = 0; i + kKeptFlights < names.size(); ++i) {
    fs::remove(fs::path(folder) / names[i], error);
  }
}

/// Everything, or the error.
std::error_code writeAll(const std::string& path, std::string_view text) {
  const int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file < 0) {
    return lastError();
  }
  std::error_code error;
  while (!text.empty() && !error) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written == 0 || errno != EINTR) {
      error = written == 0 ? std::make_error_code(std::errc::io_error) : lastError();
    }
  }
  if (::close(file) != 0 && !error) {
    error = lastError();
  }
  return error;
}

}  // namespace

Result<std::string> writeFlight(const std::string& folder,
                                const std::string& job,
                                std::string_view text) {
  std::error_code error;
  fs::create_directories(folder, error);
  const std::string prefix = "flight-" + job + "-";
  const std::string path = (fs::path(folder) / (prefix + compactUtc() + "-" +
                                                std::to_string(::getpid()) + std::string(kEnding)))
                               .string();
  const std::string temporary = path + ".tmp";
  error = writeAll(temporary, text);
  if (!error && ::rename(temporary.c_str(), path.c_str()) != 0) {
    error = lastError();
  }
  if (error) {
    ::unlink(temporary.c_str());
    return unwritable(path, error);
  }
  removeOldest(folder, prefix);
  return path;
}

}  // namespace pushrod::orchestrator
