// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

#include "tools/program.h"

namespace {

/// A standard descriptor that is closed would be given to the next file or socket, and what is told
/// would be written there. For reading only: writing to it is an error as it was.
void holdStandardDescriptors() {
  int fd = -1;
  do {
    fd = ::open("/dev/null", O_RDONLY);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  ::close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  holdStandardDescriptors();
  // A peer or reader that goes away is an error of that one write, not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  // So is a file that reaches the size that is allowed.
  std::signal(SIGXFSZ, SIG_IGN);
  // A parent may have had it ignored, and then children could not be waited for.
  std::signal(SIGCHLD, SIG_DFL);
  return pushrod::tools::runProgram(argc, argv);
}
