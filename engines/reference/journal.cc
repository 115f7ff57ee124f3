// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/journal.h"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

#include <boost/json/serialize.hpp>

namespace pushrod::engines::reference {

namespace json = boost::json;

Journal::~Journal() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

Result<std::unique_ptr<Journal>> Journal::open(const std::string& path) {
  auto journal = std::make_unique<Journal>();
  // Not blocking: a pipe that nobody reads would be waited for.
  journal->descriptor_ =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
  if (journal->descriptor_ < 0) {
    return Status(
        Code::kInvalidArgument,
        "journal " + path + " cannot be opened: " + std::generic_category().message(errno));
  }
  return journal;
}

void Journal::write(std::string_view event, const json::object& fields) {
  if (descriptor_ < 0) {
    return;
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  json::object line;
  line["t"] = std::chrono::duration<double>(now).count();
  line["event"] = event;
  for (const auto& field : fields) {
    line[field.key()] = field.value();
  }
  const std::string text = json::serialize(line) + "\n";
  const std::lock_guard lock(mutex_);
  // A full disk must not change what the engine does.
  [[maybe_unused]] const ssize_t written = ::write(descriptor_, text.data(), text.size());
}

}  // namespace pushrod::engines::reference
