// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/ledger/content.h"

#include <gtest/gtest.h>

#include "orchestrator/ledger/next_call.h"

namespace pushrod::orchestrator {
namespace {

const std::string kA(64, 'a');
const std::string kB(64, 'b');
const std::string kNothing(common::kSha256OfNothing);

std::string key(const std::string& name) {
  return "dp0:pp0:pcp0:tp0:" + name;
}

EngineIdentity plainEngine() {
  EngineIdentity identity;
  identity.release = "0.32.0";
  identity.features.hasChecker = true;
  identity.dtype = "bfloat16";
  return identity;
}

common::ContentDigests sent() {
  return {{"norm", {kA, DType::kBfloat16}}, {"head", {kB, DType::kBfloat16}}};
}

Proof proofOf(const Checksums& told,
              const EngineIdentity& identity = plainEngine(),
              const common::ContentDigests& digests = sent()) {
  return compareWithSent(told, identity, &digests).proof;
}

TEST(Content, ProvedOnlyWhenEveryParameterIsWhatWasSent) {
  EXPECT_EQ(proofOf({{key("norm"), kA}, {key("head"), kB}}), Proof::kProved);
  EXPECT_EQ(proofOf({{key("norm"), kA}}), Proof::kProved) << "an engine may leave a tensor away";
  EXPECT_EQ(proofOf({{key("norm"), kA}, {key("other"), kB}}), Proof::kNotComparable);
  EXPECT_EQ(proofOf({{key("norm"), kA}, {"dp0:pp0:pcp0:tp1:head", kB}}), Proof::kNotComparable);
  EXPECT_EQ(proofOf({}), Proof::kNotComparable);
  EXPECT_EQ(compareWithSent({{key("norm"), kA}}, plainEngine(), nullptr).proof,
            Proof::kNotComparable);
}

TEST(Content, ADifferenceIsNamed) {
  const common::ContentDigests digests = sent();
  const ContentFinding found =
      compareWithSent({{key("norm"), kB}, {key("head"), kB}}, plainEngine(), &digests);
  EXPECT_EQ(found.proof, Proof::kDiffers);
  EXPECT_NE(found.text.find("norm"), std::string::npos) << found.text;
}

TEST(Content, WhatIsNoProofIsNoDifferenceEither) {
  EXPECT_EQ(proofOf({{key("norm"), kNothing}, {key("head"), kB}}), Proof::kNotComparable);
  EXPECT_EQ(proofOf({{key("norm"), ""}}), Proof::kNotComparable);
  EngineIdentity other = plainEngine();
  other.dtype = "float32";
  EXPECT_EQ(proofOf({{key("norm"), kB}}, other), Proof::kNotComparable) << "cast on the way";
  other.dtype = "";
  EXPECT_EQ(proofOf({{key("norm"), kB}}, other), Proof::kNotComparable) << "its dtype is not told";
  EngineIdentity sharded = plainEngine();
  sharded.worldSize = 2;
  EXPECT_EQ(proofOf({{key("norm"), kA}}, sharded), Proof::kNotComparable);
  EngineIdentity quantised = plainEngine();
  quantised.quantization = "fp8";
  EXPECT_EQ(proofOf({{key("norm"), kB}}, quantised), Proof::kNotComparable);
}

TEST(Content, ATensorWithoutBytesIsProvedByTheDigestOfNothing) {
  EXPECT_EQ(
      proofOf({{key("empty"), kNothing}}, plainEngine(), {{"empty", {kNothing, DType::kBfloat16}}}),
      Proof::kProved);
}

TEST(Content, OnlyEqualLayoutsAreCompared) {
  const Checksums one = {{key("a"), kA}};
  EXPECT_TRUE(sameLayout(plainEngine(), one, plainEngine(), {{key("a"), kB}}));
  EXPECT_FALSE(sameLayout(plainEngine(), one, plainEngine(), {{key("b"), kA}}));
  EXPECT_FALSE(sameLayout(plainEngine(), one, plainEngine(), {}));
  EngineIdentity other = plainEngine();
  other.quantization = "fp8";
  EXPECT_FALSE(sameLayout(plainEngine(), one, other, one));
}

TEST(Content, BlindDigestsDifferFromNothing) {
  EXPECT_EQ(firstDifference({{key("a"), kA}, {key("b"), kA}}, {{key("a"), kA}, {key("b"), kB}}),
            key("b"));
  EXPECT_EQ(firstDifference({{key("a"), kNothing}}, {{key("a"), kA}}), "");
  EXPECT_TRUE(anyBlind({{key("a"), kA}, {key("b"), kNothing}}));
  EXPECT_FALSE(anyBlind({{key("a"), kA}}));
}

class VerifiedByContent : public ::testing::Test {
 protected:
  VerifiedByContent() {
    ledger_.identity = std::make_shared<const EngineIdentity>(plainEngine());
    ledger_.reach = Reach::kUp;
    ledger_.verifyRead = ledger_.proved = ledger_.pausedChecked = true;
    ledger_.paused = Paused::kYes;
    facts_.version = "7";
    facts_.checksums = true;
    facts_.digests = std::make_shared<const common::ContentDigests>(sent());
  }

  void answer(const Checksums& told) {
    Call call;
    call.kind = CallKind::kChecksums;
    Reply reply;
    reply.kind = CallKind::kChecksums;
    reply.httpStatus = 200;
    reply.checksums = std::make_shared<const Checksums>(told);
    ledger_ = apply(std::move(ledger_), Goal::kVerified, call, reply, facts_);
  }

  [[nodiscard]] Next next(Goal goal = Goal::kVerified) const {
    return nextCall(ledger_, goal, facts_, nullptr);
  }

  Ledger ledger_;
  PushFacts facts_;
};

TEST_F(VerifiedByContent, IsAskedOnceAndOnlyWhereItCan) {
  EXPECT_EQ(next().call.kind, CallKind::kChecksums);
  answer({{key("norm"), kA}, {key("head"), kB}});
  EXPECT_EQ(next().kind, Next::Kind::kReached);
  EXPECT_EQ(ledger_.proof, Proof::kProved);
  EXPECT_EQ(ledger_.forNextAttempt().checksums, nullptr) << "the resend is proved by its own";
  facts_.checksums = false;
  ledger_.checksums = nullptr;
  EXPECT_EQ(next().kind, Next::Kind::kReached) << "not due";
  facts_.checksums = true;
  EngineIdentity old = plainEngine();
  old.features.hasChecker = false;
  ledger_.identity = std::make_shared<const EngineIdentity>(old);
  EXPECT_EQ(next().kind, Next::Kind::kReached) << "up to 0.31";
}

TEST_F(VerifiedByContent, OtherContentFailsThePhaseAndIsNeverResumed) {
  answer({{key("norm"), kB}, {key("head"), kB}});
  EXPECT_EQ(next().kind, Next::Kind::kFailed);
  EXPECT_EQ(next().status.code(), Code::kDataMismatch);
  EXPECT_EQ(next(Goal::kResumed).kind, Next::Kind::kFailed);
  EXPECT_TRUE(ledger_.needsEmpty) << "an empty session before the resend";
}

}  // namespace
}  // namespace pushrod::orchestrator
