// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "tools/program.h"

int main(int argc, char** argv) {
  // A peer or reader that goes away is an error of that one write, not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  // A parent may have had it ignored, and then children could not be waited for.
  std::signal(SIGCHLD, SIG_DFL);
  return pushrod::tools::runProgram(argc, argv);
}
