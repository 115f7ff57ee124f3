// SPDX-License-Identifier: Apache-2.0
#include "tools/report_file.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "common/time_text.h"
#include "config/text_check.h"
#include "tools/descriptor.h"

namespace pushrod::tools {
namespace {

std::string errnoText(int error) {
  return std::generic_category().message(error);
}

std::string temporaryBeside(const std::string& path) {
  return path + ".tmp." + std::to_string(::getpid());
}

Status refused(const std::string& path, const std::string& why) {
  return {Code::kInvalidArgument,
          "--report " + path + ": cannot be written: " + why +
              "; name a file in a folder that exists and may be written"};
}

Status unwritten(const std::string& path, int error) {
  const bool room = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return {Code::kUnavailable,
          path + " could not be written: " + errnoText(error) +
              (room ? "; make room for it" : "; was its folder changed meanwhile?")};
}

Status writeAll(int fd, const std::string& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return unwritten(path, errno);
    }
    text.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
  }
  return ::fsync(fd) == 0 || errno == EINVAL ? Status() : unwritten(path, errno);
}

/// Whatever else stands there, a plan or weights say, was named by mistake.
Status checkOldReport(const std::string& path) {
  constexpr std::size_t kBeginning = 64;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, kBeginning> bytes{};
  const ssize_t got = file.valid() ? ::read(file.get(), bytes.data(), bytes.size()) : -1;
  if (got < 0) {
    return refused(path, errnoText(errno));
  }
  std::string begin(bytes.data(), static_cast<std::size_t>(got));
  std::erase_if(begin, [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; });
  const bool report = begin.empty() || begin.starts_with("{\"version\":") ||
                      begin.starts_with("[{\"version\":") || begin == "[]";
  return report ? Status() : refused(path, "what stands there is no report and would be lost");
}

/// The rename would put a file in the place of whatever stands there.
Status checkPlace(const std::string& path) {
  struct stat state = {};
  if (::lstat(path.c_str(), &state) != 0) {
    return {};
  }
  if (!S_ISREG(state.st_mode)) {
    // A device, a pipe or a link, such as /dev/stdout.
    return refused(path, S_ISDIR(state.st_mode) ? errnoText(EISDIR) : "it is not a regular file");
  }
  return checkOldReport(path);
}

constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;

}  // namespace

Status checkReportPath(const std::string& path) {
  const Status place = checkPlace(path);
  if (!place) {
    return place;
  }
  const std::string temporary = temporaryBeside(path);
  const Descriptor file(::open(temporary.c_str(), kFlags, 0644));
  if (!file.valid()) {
    return refused(path, errnoText(errno));
  }
  ::unlink(temporary.c_str());
  return {};
}

void removeOldReport(const std::string& path) {
  // A failure shows again when the new one is written.
  ::unlink(path.c_str());
}

Status writeReportFile(const std::string& path, std::string_view text) {
  // A refused report is told here once more, and something may have come there meanwhile.
  const Status place = checkPlace(path);
  if (!place) {
    return place;
  }
  const std::string temporary = temporaryBeside(path);
  const Descriptor file(::open(temporary.c_str(), kFlags, 0644));
  if (!file.valid()) {
    return unwritten(path, errno);
  }
  Status written = writeAll(file.get(), path, text);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) {
    written = unwritten(path, errno);
  }
  if (!written) {
    ::unlink(temporary.c_str());
  }
  return written;
}

PushReport refusedReport(const std::string& version, int ranks, const Status& why) {
  PushReport report;
  // What was refused may be the version itself; a report that nobody can read tells nothing.
  report.version = config::isPrintable(version) ? version : "";
  report.outcome = PushOutcome::kRefused;
  report.startedAt = common::utcText(std::chrono::system_clock::now());
  report.ranks = ranks;
  report.firstCause = why;
  if (why.origin().phase == Phase::kIdle) {
    Origin origin = why.origin();
    origin.phase = Phase::kCheck;
    report.firstCause = why.at(origin);
  }
  return report;
}

}  // namespace pushrod::tools
