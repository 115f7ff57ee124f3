// SPDX-License-Identifier: Apache-2.0
// The reference engine beside what a real server was heard to answer.
#include <gtest/gtest.h>

#include "tests/contract/engine_pair.h"
#include "tests/contract/raw_exchange.h"

namespace pushrod::contract {
namespace {

TEST(RecordedAnswersTest, TheReferenceEngineAnswersAsARealServerDid) {
  const auto recorded = Transcript::load(
      std::string(PUSHROD_SOURCE_DIR) + "/tests/real_vllm/answers", "0.32.0-two-workers");
  ASSERT_TRUE(recorded.ok()) << recorded.status().message();
  const TestEngine engine("0.32.0", 2);
  for (const char* name : {"fresh", "sleep", "sessions", "late"}) {
    SCOPED_TRACE(name);
    const auto scene = recorded->scene(name);
    ASSERT_TRUE(scene.ok()) << scene.status().message();
    expectAnswers(engine.port(), *scene);
  }
}

}  // namespace
}  // namespace pushrod::contract
