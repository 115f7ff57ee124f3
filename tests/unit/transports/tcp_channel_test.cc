// SPDX-License-Identifier: Apache-2.0
// The channel: addresses, ports, ranks, hellos, rebuilding.
#include <filesystem>

#include "tests/unit/transports/tcp_fixture.h"
#include "transports/tcp/address.h"

namespace pushrod::transports::tcp {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TcpChannel, initInfoHasExactlyTheKeysOfTheFormat) {
  TcpPlane plane(smallConfig(1 << 20, 3), kSoon);
  ChannelSpec spec;
  spec.engines = {engineNamed("a", 2), engineNamed("b", 3)};
  const auto infos = plane.announce(spec);
  ASSERT_TRUE(infos.ok());
  ASSERT_EQ(infos->size(), 2U);
  const int offsets[] = {1, 3};
  for (std::size_t i = 0; i < 2; ++i) {
    const InitInfo info = InitInfo::parse(infos->at(i));
    EXPECT_EQ(
        infos->at(i),
        "{\"protocol\": 1, \"sources\": [{\"src\": 0, \"address\": \"127.0.0.1\", \"port\": " +
            std::to_string(info.port) + "}], \"rank_offset\": " + std::to_string(offsets[i]) +
            ", \"world_size\": 6, \"channel\": \"" + info.channel +
            "\", \"packed_buffer_size_bytes\": 1048576, \"packed_num_buffers\": 3}");
    EXPECT_EQ(info.channel.size(), 32U);
    EXPECT_NE(info.port, 0);
  }
}

struct Seat {
  std::uint32_t offset;
  std::uint32_t world;
};

std::vector<Seat> seatsOf(const std::vector<PlaneEngine>& engines, Group group) {
  TransportConfig config = smallConfig();
  config.group = group;
  TcpPlane plane(config, kSoon);
  ChannelSpec spec;
  spec.engines = engines;
  const auto infos = plane.announce(spec);
  EXPECT_TRUE(infos.ok()) << infos.status().message();
  std::vector<Seat> seats;
  for (std::size_t i = 0; infos.ok() && i < infos->size(); ++i) {
    const InitInfo info = InitInfo::parse(infos->at(i));
    seats.push_back({info.rankOffset, info.worldSize});
  }
  return seats;
}

TEST(TcpChannel, rankOffsetsCountADataParallelGroupOnce) {
  const std::vector<PlaneEngine> engines = {
      engineNamed("a", 2), engineNamed("b", 4, "g"), engineNamed("c", 1), engineNamed("d", 4, "g")};
  const std::vector<Seat> shared = seatsOf(engines, Group::kShared);
  const std::uint32_t offsets[] = {1, 3, 7, 3};
  const std::vector<Seat> apart = seatsOf(engines, Group::kPerEngine);
  const std::uint32_t worlds[] = {3, 5, 2, 5};
  ASSERT_EQ(shared.size(), 4U);
  ASSERT_EQ(apart.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(shared[i].offset, offsets[i]);
    EXPECT_EQ(shared[i].world, 8U);
    EXPECT_EQ(apart[i].offset, 1U);
    EXPECT_EQ(apart[i].world, worlds[i]);
  }
}

TEST(TcpChannel, badEngineListsAreRefused) {
  TcpPlane plane(smallConfig(), kSoon);
  ChannelSpec spec;
  EXPECT_FALSE(plane.announce(spec).ok());
  spec.engines = {engineNamed("a", 0)};
  EXPECT_THAT(plane.announce(spec).status().message(), HasSubstr("'a' reports 0 workers"));
  spec.engines = {engineNamed("a", 2, "g"), engineNamed("b", 3, "g")};
  EXPECT_THAT(plane.announce(spec).status().message(),
              AllOf(HasSubstr("'a' and 'b'"), HasSubstr("2 and 3")));
}

TEST(TcpChannel, aGroupsWorkersAreServedAndCountedInBlocks) {
  OpenChannel channel;
  channel.plane = std::make_unique<TcpPlane>(smallConfig(), kSoon);
  ChannelSpec spec;
  spec.engines = {engineNamed("a", 4, "g"), engineNamed("b", 4, "g")};
  const auto infos = channel.plane->announce(spec);
  ASSERT_TRUE(infos.ok());
  for (std::uint32_t rank = 1; rank <= 4; ++rank) {
    const InitInfo info = InitInfo::parse(infos->at(rank <= 2 ? 0 : 1));
    channel.workers.push_back(TcpReceiver::connectTo(info));
    ASSERT_EQ(channel.workers.back().hello(info.channel, rank), 0);
  }
  ASSERT_TRUE(channel.plane->open(in(kSoon)).ok());
  ASSERT_TRUE(pushAll(*channel.plane, {sampleOf("x", 10)}).ok());
  EXPECT_EQ(channel.plane->bytesSent(0), 20U);
  EXPECT_EQ(channel.plane->bytesSent(1), 20U);
}

TEST(TcpChannel, wrongHellosAreAnsweredByTheirCodeAndDoNoHarm) {
  TcpPlane plane(smallConfig(), kSoon);
  ChannelSpec spec;
  spec.engines = {engineNamed("a", 2)};
  const auto infos = plane.announce(spec);
  ASSERT_TRUE(infos.ok());
  const InitInfo info = InitInfo::parse(infos->front());
  const std::string good = TcpReceiver::helloBytes(info.channel, 1);
  const auto changed = [&](std::size_t at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    return bytes;
  };

  struct Row {
    const char* name;
    std::string hello;
    int answer;
  };

  const Row rows[] = {
      {"other magic", changed(7), 1},
      {"http", "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 1},
      {"first byte of the channel", changed(8), 1},
      {"last byte of the channel", changed(23), 1},
      {"tail not zero", changed(31), 1},
      {"rank 0", TcpReceiver::helloBytes(info.channel, 0), 2},
      {"rank beyond", TcpReceiver::helloBytes(info.channel, 3), 2},
      {"rank far beyond", TcpReceiver::helloBytes(info.channel, 0xffffffffU), 2},
  };
  for (const Row& row : rows) {
    TcpReceiver stranger = TcpReceiver::connectTo(info);
    // What is longer than a hello may be cut off by the close.
    EXPECT_EQ(stranger.helloRaw(row.hello.substr(0, 32)), row.answer) << row.name;
    EXPECT_TRUE(stranger.closedByPeer()) << row.name;
  }
  TcpReceiver halfway = TcpReceiver::connectTo(info);
  ASSERT_TRUE(halfway.send(good.substr(0, 31)));
  halfway.close();
  TcpReceiver first = TcpReceiver::connectTo(info);
  EXPECT_EQ(first.hello(info.channel, 1), 0);
  TcpReceiver twin = TcpReceiver::connectTo(info);
  EXPECT_EQ(twin.hello(info.channel, 1), 2);
  // In two pieces.
  TcpReceiver second = TcpReceiver::connectTo(info);
  ASSERT_TRUE(second.send(TcpReceiver::helloBytes(info.channel, 2).substr(0, 10)));
  EXPECT_EQ(second.helloRaw(TcpReceiver::helloBytes(info.channel, 2).substr(10)), 0);
  EXPECT_TRUE(plane.open(in(kSoon)).ok());
  EXPECT_TRUE(plane.ready());
  TcpReceiver late = TcpReceiver::connectTo(info);
  EXPECT_EQ(late.hello(info.channel, 2), 2);
  EXPECT_TRUE(plane.ready());
}

TEST(TcpChannel, openNamesWhoIsMissing) {
  TcpPlane plane(smallConfig(), kSoon);
  ChannelSpec spec;
  spec.engines = {engineNamed("a", 1), engineNamed("b", 2)};
  const auto infos = plane.announce(spec);
  ASSERT_TRUE(infos.ok());
  const InitInfo info = InitInfo::parse(infos->front());
  TcpReceiver worker = TcpReceiver::connectTo(info);
  ASSERT_EQ(worker.hello(info.channel, 2), 0);
  const Status status = plane.open(in(std::chrono::milliseconds(50)));
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("2 of 3 workers"),
                    HasSubstr("engine 'a' worker 0 (rank 1)"),
                    HasSubstr("engine 'b' worker 1 (rank 3)"),
                    Not(HasSubstr("rank 2"))));
  EXPECT_THAT(status.message(), Not(HasSubstr(info.channel)));
  EXPECT_EQ(status.origin().engine, "a");
  EXPECT_FALSE(plane.ready());
}

TEST(TcpChannel, aTakenPortIsNamedAndAFixedPortCanBeUsedAgain) {
  TcpPlane holder(smallConfig(), kSoon);
  ChannelSpec spec;
  spec.engines = {engineNamed("a")};
  const auto infos = holder.announce(spec);
  ASSERT_TRUE(infos.ok());
  const InitInfo info = InitInfo::parse(infos->front());
  TransportConfig config = smallConfig();
  config.port = info.port;
  OpenChannel channel;
  channel.plane = std::make_unique<TcpPlane>(config, kSoon);
  const Status taken = channel.plane->announce(spec).status();
  EXPECT_EQ(taken.code(), Code::kFailedPrecondition);
  EXPECT_THAT(
      taken.message(),
      AllOf(HasSubstr("127.0.0.1:" + std::to_string(info.port)), HasSubstr("transport.port")));
  holder.abort(Status(Code::kAborted, "end"));
  for (int i = 0; i < 5; ++i) {
    joinAll(channel, spec.engines);
    EXPECT_EQ(InitInfo::parse(channel.infos[0]).port, info.port);
    channel.plane->abort(Status(Code::kAborted, "again"));
  }
}

TEST(TcpChannel, addressesAreNeverWildcards) {
  struct Row {
    const char* url;
    const char* bind;
    const char* announced;
  };

  const Row rows[] = {
      {"http://127.0.0.1:8000", "auto", "127.0.0.1"},
      {"http://localhost:8000/", "auto", "127.0.0.1"},
      {"http://127.0.0.1:8000/prefix", "0.0.0.0", "127.0.0.1"},
      {"http://unknown.invalid:1", "127.0.0.1", "127.0.0.1"},
      {"", "127.0.0.2", "127.0.0.2"},
  };
  for (const Row& row : rows) {
    TransportConfig config = smallConfig();
    config.bind = row.bind;
    OpenChannel channel;
    channel.plane = std::make_unique<TcpPlane>(config, kSoon);
    joinAll(channel, {{"a", 1, "", row.url}});
    ASSERT_FALSE(channel.infos.empty()) << row.url;
    EXPECT_EQ(InitInfo::parse(channel.infos[0]).address, row.announced) << row.url;
  }
}

TEST(TcpChannel, ipv6EnginesBesideIpv4Ones) {
  OpenChannel channel;
  channel.plane = std::make_unique<TcpPlane>(smallConfig(), kSoon);
  joinAll(channel, {{"a", 1, "", "http://[::1]:8000/v1"}, engineNamed("b")});
  ASSERT_EQ(channel.infos.size(), 2U);
  EXPECT_EQ(InitInfo::parse(channel.infos[0]).address, "::1");
  EXPECT_EQ(InitInfo::parse(channel.infos[1]).address, "127.0.0.1");
  EXPECT_TRUE(pushAll(*channel.plane, {sampleOf("x", 10)}).ok());
}

TEST(TcpChannel, anAddressThatCannotBeToldIsRefusedByName) {
  TcpPlane plane(smallConfig(), kSoon);
  ChannelSpec spec;
  spec.engines = {{"a", 1, "", ""}};
  EXPECT_THAT(plane.announce(spec).status().message(),
              AllOf(HasSubstr("'a'"), HasSubstr("transport.bind")));
  spec.engines = {engineNamed("a")};
  for (const char* bind : {"999.1.1.1", "192.0.2.1"}) {
    TransportConfig config = smallConfig();
    config.bind = bind;
    TcpPlane other(config, kSoon);
    EXPECT_THAT(other.announce(spec).status().message(), HasSubstr(bind));
  }
}

TEST(TcpChannel, hostsOfUrls) {
  struct Row {
    const char* url;
    const char* host;
  };

  for (const Row& row : {Row{"http://h:1", "h"},
                         Row{"https://h", "h"},
                         Row{"http://[fe80::1]:80/p", "fe80::1"},
                         Row{"http://h/p:1", "h"},
                         Row{"http://u:s@h:1/", "h"},
                         Row{"h:1", "h"},
                         Row{"http://h?x", "h"},
                         Row{"http://[::1", "::1"},
                         Row{"", ""}}) {
    EXPECT_EQ(hostOfUrl(row.url), row.host) << row.url;
  }
}

std::size_t entriesOf(const char* folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++count;
  }
  return count;
}

TEST(TcpChannel, fiftyRebuildsLeaveNothingBehind) {
  OpenChannel channel;
  channel.plane = std::make_unique<TcpPlane>(smallConfig(), kSoon);
  const std::vector<PlaneEngine> engines = {engineNamed("a", 2), engineNamed("b", 1)};
  const std::vector<Sample> samples = {sampleOf("x", 150), sampleOf("y", 30)};
  const std::size_t fds = entriesOf("/proc/self/fd");
  const std::size_t threads = entriesOf("/proc/self/task");
  std::string lastChannel;
  for (int i = 0; i < 50; ++i) {
    joinAll(channel, engines);
    ASSERT_TRUE(pushAll(*channel.plane, samples).ok());
    const std::string id = InitInfo::parse(channel.infos[0]).channel;
    EXPECT_NE(id, lastChannel);
    lastChannel = id;
    channel.plane->abort(Status(Code::kAborted, "again"));
    channel.plane->abort(Status(Code::kAborted, "twice does no harm"));
    channel.workers.clear();
    EXPECT_EQ(entriesOf("/proc/self/fd"), fds);
    EXPECT_EQ(entriesOf("/proc/self/task"), threads);
  }
}

TEST(TcpChannel, aSecondAnnounceNeedsAnAbort) {
  OpenChannel channel = openChannel(smallConfig(), {engineNamed("a")});
  ChannelSpec spec;
  spec.engines = {engineNamed("a")};
  EXPECT_FALSE(channel.plane->announce(spec).ok());
  EXPECT_TRUE(channel.plane->ready());
}

}  // namespace
}  // namespace pushrod::transports::tcp
