// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/explain.h"

#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "tools/console.h"
#include "tools/descriptor.h"
#include "tools/exit_code.h"
#include "tools/explain/record.h"
#include "tools/explain/story.h"

namespace pushrod::tools {
namespace {

Status unreadable(const std::string& path, int error) {
  return {Code::kInvalidArgument,
          path + ": cannot be read: " + std::generic_category().message(error)};
}

/// At most one byte more than a record may have.
Result<std::string> readFile(const std::string& path) {
  // Not blocking: a pipe that nobody writes to would be waited for.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat state = {};
  if (!file.valid() || ::fstat(file.get(), &state) != 0) {
    return unreadable(path, errno);
  }
  if (!S_ISREG(state.st_mode)) {
    return unreadable(path, S_ISDIR(state.st_mode) ? EISDIR : EINVAL);
  }
  std::string text;
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  while (text.size() <= kMaxFlightFile) {
    const std::size_t before = text.size();
    text.resize(before + kPiece);
    const ssize_t got = ::read(file.get(), text.data() + before, kPiece);
    text.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got < 0 && errno != EINTR) {
      return unreadable(path, errno);
    }
    if (got == 0) {
      break;
    }
  }
  return text;
}

int explain(const std::string& path) {
  const Result<std::string> text = readFile(path);
  const Result<FlightFile> file = text ? parseFlight(*text, path) : text.status();
  if (!file) {
    printError(file.status().message() +
               "; name a flight record, which a failed or resent push leaves beside its report");
    return kExitRefused;
  }
  return printAnswer(explainFlight(*file));
}

}  // namespace

void addExplainCommand(CLI::App& app, int& exitCode) {
  const auto path = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "explain", "Read a flight record: name the culprit, show what ranks and engines did");
  command->add_option("file", *path, "Flight record (flight-JOB-TIME-PID.jsonl)")
      ->required()
      ->type_name("FILE");
  command->callback([path, &exitCode] { exitCode = explain(*path); });
}

}  // namespace pushrod::tools
