// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include "orchestrator/flight/lines.h"
#include "orchestrator/flight/ring.h"
#include "orchestrator/fsm/push_table.h"

namespace pushrod::orchestrator {
namespace {

FlightEvent stepEvent(EventKind kind) {
  FlightEvent event;
  event.kind = FlightKind::kStep;
  event.event = kind;
  return event;
}

/// A rank in the middle of a stream that it only gathers.
PushState gathering() {
  PushState state;
  state.phase = Phase::kStream;
  state.stage = Stage::kNext;
  state.steps = {1'000'000};
  return state;
}

std::size_t lineCount(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(FlightRing, KeepsTheLastEventsAndTheStateBeforeThem) {
  FlightRing ring;
  ring.reset(gathering());
  constexpr std::uint64_t kMore = 300;
  for (std::uint64_t i = 0; i < FlightRing::kMaxEvents + kMore; ++i) {
    ring.add(stepEvent(EventKind::kSourceItem));
  }
  EXPECT_EQ(ring.events().size(), FlightRing::kMaxEvents);
  EXPECT_EQ(ring.dropped(), kMore);
  EXPECT_EQ(ring.base().tensors, kMore);
  EXPECT_EQ(ring.base().stage, Stage::kNext);
}

TEST(FlightRing, BoundsItsTexts) {
  FlightRing ring;
  ring.reset(gathering());
  std::size_t added = 0;
  for (; added < 2 * FlightRing::kMaxTexts; added += kMaxFlightText) {
    FlightEvent event;
    event.kind = FlightKind::kReply;
    event.text = std::string(kMaxFlightText, 'x');
    ring.add(std::move(event));
  }
  EXPECT_EQ(ring.events().size(), FlightRing::kMaxTexts / kMaxFlightText);
}

TEST(FlightRing, WritesTheNewestThatFitAndCountsTheRest) {
  FlightRing ring;
  ring.reset(gathering());
  constexpr std::uint64_t kEvents = 100;
  for (std::uint64_t i = 0; i < kEvents; ++i) {
    ring.add(stepEvent(EventKind::kSourceItem));
  }
  const std::string whole = ring.encode(3, {}, std::size_t{1} << 20);
  EXPECT_EQ(lineCount(whole), kEvents + 1);
  EXPECT_EQ(whole.find("\"dropped\""), std::string::npos);
  constexpr std::size_t kBudget = 4096;
  const std::string part = ring.encode(3, {}, kBudget);
  EXPECT_LE(part.size(), kBudget);
  const std::uint64_t left = kEvents + 1 - lineCount(part);
  EXPECT_GT(left, 0U);
  EXPECT_NE(part.find("\"dropped\":" + std::to_string(left)), std::string::npos) << part;
  EXPECT_NE(part.find("\"tensors\":" + std::to_string(left)), std::string::npos) << part;
  EXPECT_EQ(part.substr(part.size() - 40), whole.substr(whole.size() - 40));
  EXPECT_EQ(lineCount(ring.encode(3, {}, 0)), 1U);
}

TEST(FlightRing, BeginsAnewWithEachPush) {
  FlightRing ring;
  ring.reset(gathering());
  ring.add(stepEvent(EventKind::kSourceItem));
  ring.reset(PushState());
  EXPECT_TRUE(ring.events().empty());
  EXPECT_EQ(ring.base().phase, Phase::kIdle);
}

TEST(FlightLines, TellATensorByItsManifest) {
  Manifest manifest;
  manifest.tensors.push_back({"model.w", DType::kBfloat16, {2, 3}});
  FlightEvent event = stepEvent(EventKind::kSourceItem);
  event.tensor = 0;
  EXPECT_NE(eventLine(1, event, {&manifest, nullptr})
                .find(R"("tensor":{"index":0,"name":"model.w","shape":[2,3],"bytes":12})"),
            std::string::npos);
  event.tensor = 1;
  EXPECT_NE(eventLine(1, event, {&manifest, nullptr}).find(R"("tensor":{"index":1})"),
            std::string::npos);
}

TEST(FlightLines, TellADraftsTensorByTheDraftsManifest) {
  Manifest target;
  target.tensors.push_back({"model.w", DType::kBfloat16, {2, 3}});
  Manifest draft;
  draft.tensors.push_back({"draft.w", DType::kBfloat16, {4}});
  FlightEvent event = stepEvent(EventKind::kSourceItem);
  event.tensor = 0;
  event.draft = true;
  const std::string line = eventLine(1, event, {&target, &draft});
  EXPECT_NE(line.find(R"("draft":true)"), std::string::npos) << line;
  EXPECT_NE(line.find(R"("name":"draft.w")"), std::string::npos) << line;
}

TEST(FlightText, IsOneLineOfUtf8OfBoundedLength) {
  EXPECT_EQ(flightText("a\nb\tc\x01"), "a b c?");
  EXPECT_EQ(flightText("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(flightText("x\xC3"), "x?");
  EXPECT_EQ(flightText("\xC0\x80\xED\xA0\x80\xFF"), "??????");
  EXPECT_EQ(flightText("\xF0\x9F\x98\x80", 3), "");
  EXPECT_EQ(flightText(std::string(5000, 'y')).size(), kMaxFlightText);
}

TEST(FlightSecrets, AreHiddenAndTheRestStays) {
  EXPECT_EQ(withoutSecrets(R"j({"channel": "abc\"d", "port": 1, "name": "channel"})j"),
            R"j({"channel": "(hidden)", "port": 1, "name": "channel"})j");
  EXPECT_EQ(withoutSecrets(R"j({"nccl_unique_id_b64":"AA==","sources":[{"port":1}]})j"),
            R"j({"nccl_unique_id_b64":"(hidden)","sources":[{"port":1}]})j");
  EXPECT_EQ(withoutSecrets("channel abc"), "") << "nothing of what cannot be understood";
  EXPECT_EQ(withoutSecrets(R"j({"channel": "abc)j"), "");
}

}  // namespace
}  // namespace pushrod::orchestrator
