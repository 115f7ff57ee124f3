// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "orchestrator/fsm/push_table.h"

namespace pushrod::orchestrator {
namespace {

TEST(DescribeTable, TheDocumentIsTheTable) {
  const std::string path = std::string(PUSHROD_SOURCE_DIR) + "/docs/state-machine.md";
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file.good()) << path << " is missing; run pushrod_table > docs/state-machine.md";
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), describeTable())
      << "the table has changed; run pushrod_table > docs/state-machine.md";
}

TEST(DescribeTable, EveryRowHasItsOwnId) {
  std::set<std::string_view> ids;
  for (const Row& row : pushTable()) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
    EXPECT_NE(row.from, PhaseSet{0}) << row.id;
  }
}

TEST(DescribeTable, ShowsEachRowOnce) {
  const std::string text = describeTable();
  for (const Row& row : pushTable()) {
    const std::string cell = "| " + std::string(row.id) + " | ";
    const std::size_t at = text.find("\n" + cell);
    ASSERT_NE(at, std::string::npos) << row.id;
    EXPECT_EQ(text.find("\n" + cell, at + 1), std::string::npos) << row.id;
  }
}

}  // namespace
}  // namespace pushrod::orchestrator
