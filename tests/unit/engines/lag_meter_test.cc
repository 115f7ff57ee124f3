// SPDX-License-Identifier: Apache-2.0
#include "engines/vllm/lag_meter.h"

#include <string_view>

#include <gtest/gtest.h>

#include "tests/unit/engines/late_workers.h"

namespace pushrod::engines::vllm {
namespace {

/// Reads by a meter until it is done; each read is one call to the workers.
LagMeter measure(Workers& model) {
  constexpr std::size_t kHead = std::string_view(R"({"results":[)").size();
  LagMeter meter;
  while (!meter.lag() && !meter.exhausted()) {
    const bool rank = meter.next() == LagMeter::Attribute::kRank;
    const ScriptedReply reply = model.call(rank ? model.ranks() : model.all("\"True\""));
    if (reply.result->status != 200) {
      meter.onFailure();
      continue;
    }
    std::vector<std::string> texts(1);
    for (const char c : reply.result->body.substr(kHead)) {
      if (c == ',') {
        texts.emplace_back();
      } else if (c != '"' && c != ']' && c != '}') {
        texts.back() += c;
      }
    }
    meter.onAnswer(texts);
  }
  return meter;
}

/// Brings the second of two workers that many calls behind.
void fallBehind(Workers& model, int lag) {
  for (int i = 0; i < lag; ++i) {
    model.refuseAll("old");
  }
  for (int i = 0; i < lag; ++i) {
    model.call(model.all("null"));  // the late errors come out
  }
  ASSERT_EQ(model.lag(), lag);
}

TEST(LagMeterTest, MeasuresRightAfterAnyFailures) {
  for (std::size_t workers = 2; workers <= 4; ++workers) {
    for (int failures = 0; failures <= 6; ++failures) {
      for (int tail = 0; tail < 8; ++tail) {
        Workers model(workers);
        for (int i = 0; i < failures; ++i) {
          model.refuseAll("old");
        }
        // Other calls since: plain ones and reads of the rank, in every order.
        for (int i = 0; i < 3; ++i) {
          model.call((tail >> i) % 2 == 0 ? model.all("null") : model.ranks());
        }
        const LagMeter meter = measure(model);
        EXPECT_LE(meter.reads(), LagMeter::kMaxReads);
        if (meter.lag()) {
          EXPECT_EQ(*meter.lag(), model.lag())
              << workers << " workers, " << failures << " failures, tail " << tail;
        }
      }
    }
  }
}

TEST(LagMeterTest, ASecondMeasurementAgreesWithTheFirst) {
  for (int failures = 0; failures <= 3; ++failures) {
    Workers model(3);
    for (int i = 0; i < failures; ++i) {
      model.refuseAll("old");
    }
    const LagMeter first = measure(model);
    const int reads = first.reads();
    ASSERT_TRUE(first.lag().has_value()) << failures << " failures, " << reads << " reads";
    EXPECT_EQ(*first.lag(), model.lag());
    for (int again = 0; again < 3; ++again) {
      EXPECT_EQ(measure(model).lag(), model.lag()) << failures << " failures";
    }
  }
}

TEST(LagMeterTest, MeasuresUpToTheLargestUsableLag) {
  for (int lag = 0; lag <= 8; ++lag) {
    Workers model(2);
    fallBehind(model, lag);
    EXPECT_EQ(measure(model).lag(), lag);
  }
}

TEST(LagMeterTest, ALargerLagIsNeverTakenForAUsableOne) {
  for (int lag = 9; lag <= 12; ++lag) {
    // Earlier jobs measured too, in the same order; other calls came between, or none.
    for (int between = 0; between < 16; ++between) {
      Workers model(2);
      fallBehind(model, lag);
      EXPECT_EQ(measure(model).lag(), std::nullopt) << lag;
      for (int i = 0; i < between; ++i) {
        model.call(model.all("null"));
      }
      EXPECT_EQ(measure(model).lag(), std::nullopt) << lag << ", " << between << " between";
    }
  }
}

}  // namespace
}  // namespace pushrod::engines::vllm
