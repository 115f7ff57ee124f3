// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/owned_plane.h"

#include <regex>
#include <thread>

#include "tcp_fixture.h"
#include "transports/tcp/invitation.h"

namespace pushrod::transports::tcp {
namespace {

using ::testing::HasSubstr;

Sample owned(const std::string& name, std::int64_t size, int owner) {
  Sample sample = sampleOf(name, size);
  sample.spec.owner = owner;
  return sample;
}

TEST(OwnerRuns, AreCutWhereTheOwnerChanges) {
  const Manifest manifest =
      manifestOf({owned("a", 1, 2), owned("b", 1, 2), owned("c", 1, 0), owned("d", 1, 2)});
  EXPECT_EQ(ownerRuns(manifest), (std::vector<OwnerRun>{{0, 2, 2}, {2, 3, 0}, {3, 4, 2}}));
  EXPECT_EQ(ownersOf(manifest), (std::vector<int>{0, 2}));
  EXPECT_TRUE(ownerRuns(Manifest{}).empty());
}

TEST(OwnerRuns, AnOwnerMustBeARankAndRankZeroWithoutTheKey) {
  const Manifest manifest = manifestOf({owned("a", 1, 0), owned("b", 1, 2)});
  EXPECT_TRUE(checkOwners(manifest, true, 3).ok());
  EXPECT_THAT(checkOwners(manifest, true, 2).message(), HasSubstr("ranks 0 to 1"));
  EXPECT_THAT(checkOwners(manifest, false, 3).message(), HasSubstr("transport.owners: true"));
  EXPECT_FALSE(checkOwners(manifestOf({owned("a", 1, -1)}), true, 2).ok());
}

TEST(InvitationText, ComesBackAsItWas) {
  Invitation given{{0, 5}, {common::randomId()}, {engineNamed("a b: 3", 4, "group 1")}};
  given.engines.push_back({"v6", 1, "", "http://[::1]:8000/prefix"});
  given.engines.push_back({"none", 1, "", ""});
  const std::string text = given.encode();
  EXPECT_EQ(text.find("prefix"), std::string::npos) << "only hosts travel";
  const auto back = Invitation::decode(text);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->owners, given.owners);
  EXPECT_EQ(back->ids, given.ids);
  ASSERT_EQ(back->engines.size(), 3U);
  EXPECT_EQ(back->engines[0].name, "a b: 3");
  EXPECT_EQ(back->engines[0].dpGroup, "group 1");
  EXPECT_EQ(back->engines[0].workers, 4);
  EXPECT_EQ(back->engines[1].url, "http://[::1]");
  EXPECT_EQ(back->engines[2].url, "");
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(Invitation::decode(text.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(Invitation::decode(text + " ").ok());
  EXPECT_FALSE(decodeEndpoints(" 3:abc").ok());
  EXPECT_FALSE(decodeEndpoints(" 3:abc 70000").ok());
}

/// Three ranks, of which 0 and 2 own tensors, and one engine with one worker.
class OwnedPlanes : public ::testing::Test {
 protected:
  const std::vector<Sample> samples_{
      owned("a", 60, 0), owned("b", 60, 0), owned("c", 90, 2), owned("d", 20, 0)};
  const Manifest manifest_ = manifestOf(samples_);
  const std::vector<int> owners_ = ownersOf(manifest_);

  OwnedPlanes() {
    for (int rank = 0; rank < 3; ++rank) {
      planes_.push_back(std::make_unique<OwnedPlane>(rank, smallConfig(), kSoon));
    }
  }

  OwnedPlane& plane(int rank) { return *planes_[static_cast<std::size_t>(rank)]; }

  void join() {
    ChannelSpec spec;
    spec.engines = {engineNamed("e")};
    const auto invitation = plane(0).invite(spec, owners_);
    ASSERT_TRUE(invitation.ok()) << invitation.status().message();
    Answers answers;
    for (const auto& each : planes_) {
      answers.push_back(each->join(*invitation));
    }
    EXPECT_TRUE(answers[1].empty());
    const auto infos = plane(0).initInfos(answers);
    ASSERT_TRUE(infos.ok()) << infos.status().message();
    const InitInfo info = InitInfo::parse((*infos)[0]);
    EXPECT_EQ(info.rankOffset, 2U);
    EXPECT_EQ(info.worldSize, 3U);
    const std::regex port("\"src\": ([0-9]+), \"address\": \"127.0.0.1\", \"port\": ([0-9]+)");
    for (std::sregex_iterator at((*infos)[0].begin(), (*infos)[0].end(), port), end; at != end;
         ++at) {
      sources_.push_back(TcpReceiver::connectTo(
          "127.0.0.1", static_cast<std::uint16_t>(std::stoul((*at)[2].str()))));
      EXPECT_EQ(sources_.back().hello(info.channel, 2), 0);
    }
    ASSERT_EQ(sources_.size(), 2U);
    for (const auto& each : planes_) {
      EXPECT_TRUE(each->open(in(kSoon)).ok());
      EXPECT_TRUE(each->ready());
    }
  }

  /// Every rank's pass, as ranks that meet after each tensor have it.
  Status pass() {
    Status first;
    for (const auto& each : planes_) {
      first.merge(each->begin(manifest_));
    }
    for (const Sample& sample : samples_) {
      for (int rank = 2; rank >= 0; --rank) {
        first.merge(plane(rank).put(sample.spec, sample.view(), in(kSoon)));
      }
    }
    for (int rank = 2; rank >= 0; --rank) {
      first.merge(plane(rank).flush(in(kSoon)));
    }
    return first;
  }

  std::vector<std::unique_ptr<OwnedPlane>> planes_;
  std::vector<TcpReceiver> sources_;
};

TEST_F(OwnedPlanes, EachRunIsAnUpdateOfItsOwnersAndStepsEndWithIt) {
  const auto plan = plane(0).plan(manifest_, owners_);
  ASSERT_TRUE(plan.ok());
  // 60 + 60 exceeds the buffer of 100; then one chunk each.
  EXPECT_EQ(plan->ends, (std::vector<std::size_t>{2, 3, 4}));
  ASSERT_EQ(plan->bodies.size(), 3U);
  EXPECT_THAT(*plan->bodies[0], HasSubstr(R"("names": ["a", "b"])"));
  EXPECT_THAT(*plan->bodies[0], HasSubstr(R"("src": 0})"));
  EXPECT_THAT(*plan->bodies[1], HasSubstr(R"("src": 1})"));
  EXPECT_THAT(*plan->bodies[2], HasSubstr(R"("src": 0})"));
}

TEST_F(OwnedPlanes, OwnersSendOneAfterAnotherAndRankZeroWaitsForTheAnswers) {
  join();
  plane(0).expect({"e"});
  std::vector<std::string> bytes;
  std::thread worker([&] {
    const std::vector<OwnerRun> runs = ownerRuns(manifest_);
    for (std::size_t run = 0; run < runs.size(); ++run) {
      std::vector<std::string> got;
      TcpReceiver& source = sources_[runs[run].owner == 0 ? 0 : 1];
      EXPECT_EQ(source.receiveUpdate(tensorsOf(manifest_, runs[run]), 100, got), "");
      bytes.insert(bytes.end(), got.begin(), got.end());
      plane(0).answered("e", run + 1);
    }
  });
  EXPECT_TRUE(pass().ok());
  worker.join();
  ASSERT_EQ(bytes.size(), samples_.size());
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    EXPECT_EQ(bytes[i], samples_[i].bytes) << samples_[i].spec.name;
  }
  EXPECT_EQ(plane(0).bytesSent(0), manifest_.bytes());
}

TEST_F(OwnedPlanes, AnEngineThatDoesNotAnswerARunIsNamed) {
  join();
  plane(0).expect({"e"});
  ASSERT_TRUE(plane(0).begin(manifest_).ok());
  ASSERT_TRUE(plane(0).put(samples_[0].spec, samples_[0].view(), in(kSoon)).ok());
  const Status late =
      plane(0).put(samples_[1].spec, samples_[1].view(), in(std::chrono::milliseconds(50)));
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(late.origin().engine, "e");
}

TEST_F(OwnedPlanes, AnInterruptEndsTheWaitAndHoldsInTheNextRun) {
  join();
  plane(0).expect({"e"});
  ASSERT_TRUE(plane(0).begin(manifest_).ok());
  plane(0).interrupt(Status(Code::kCancelled, "stop"));
  EXPECT_EQ(plane(0).put(samples_[0].spec, samples_[0].view(), in(kSoon)).code(), Code::kCancelled);
}

TEST_F(OwnedPlanes, AChannelIsKeptWhileEverySourceIsSound) {
  join();
  EXPECT_TRUE(plane(0).hasSources({0, 2}));
  EXPECT_FALSE(plane(0).hasSources({0}));
  const auto ask = [&] {
    Answers answers;
    for (const auto& each : planes_) {
      answers.push_back(each->join(OwnedStreams::kKeep));
    }
    return plane(0).soundness(answers);
  };
  EXPECT_TRUE(ask().ok());
  plane(2).abort(Status(Code::kAborted, "gone"));
  EXPECT_THAT(ask().message(), HasSubstr("rank 2"));
}

TEST_F(OwnedPlanes, ASourcesOwnFailureIsTheChannels) {
  ChannelSpec spec;
  spec.engines = {engineNamed("e")};
  const auto invitation = plane(0).invite(spec, owners_);
  ASSERT_TRUE(invitation.ok());
  const Answers answers{plane(0).join(*invitation), "", "!port 7 is taken"};
  const auto infos = plane(0).initInfos(answers);
  ASSERT_FALSE(infos.ok());
  EXPECT_EQ(infos.status().message(), "port 7 is taken");
  EXPECT_EQ(infos.status().origin().rank, 2);
  EXPECT_FALSE(plane(0).initInfos({answers[0]}).ok());
}

}  // namespace
}  // namespace pushrod::transports::tcp
