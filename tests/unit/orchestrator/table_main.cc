// SPDX-License-Identifier: Apache-2.0
// Prints the push table as Markdown: pushrod_table > docs/state-machine.md
#include <cstdio>

#include "orchestrator/fsm/push_table.h"

int main() {
  const std::string text = pushrod::orchestrator::describeTable();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
