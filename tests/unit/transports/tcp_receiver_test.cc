// SPDX-License-Identifier: Apache-2.0
// The receiver of tests and benches must itself refuse what the wire format forbids.
#include "tests/support/tcp_receiver.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transports/tcp/wire.h"

namespace pushrod::transports::tcp {
namespace {

using pushrod::testing::TcpReceiver;

std::string frame(std::uint32_t kind,
                  std::uint32_t index,
                  const std::string& payload,
                  std::uint64_t xxh3 = 0,
                  std::int64_t lengthError = 0) {
  const Header header = encodeHeader(static_cast<FrameKind>(kind),
                                     index,
                                     payload.size() + static_cast<std::uint64_t>(lengthError),
                                     xxh3);
  return std::string(reinterpret_cast<const char*>(header.data()), header.size()) + payload;
}

std::string received(const std::string& bytes) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return "no socket pair";
  }
  TcpReceiver reader(ends[0]);
  {
    TcpReceiver writer(ends[1]);
    EXPECT_TRUE(writer.send(bytes));
  }
  const Manifest manifest = {{{"a", DType::kUint8, {8}, 0},
                              {"b", DType::kUint8, {4}, 0},
                              {"c", DType::kUint8, {3}, 0},
                              {"e", DType::kUint8, {0}, 0}}};
  std::vector<std::string> tensors;
  const std::string fault = reader.receiveUpdate(manifest, 10, tensors);
  if (fault.empty()) {
    EXPECT_EQ(tensors, (std::vector<std::string>{"AAAAAAAA", "BBBB", "CCC", ""}));
  }
  return fault;
}

TEST(TcpReceiver, tableOfFrames) {
  const std::string first = "AAAAAAAABBBB";
  const std::uint64_t digest = XXH3_64bits(first.data(), first.size());
  const std::string good = frame(1, 0, first, digest);

  struct Row {
    const char* name;
    std::string bytes;
    std::string fault;
  };

  const Row rows[] = {
      {"good", good + frame(1, 1, "CCC") + frame(2, 2, ""), ""},
      {"nothing", "", "closed"},
      {"half a header", good.substr(0, 20), "closed"},
      {"half a payload", good.substr(0, 30), "closed"},
      {"closed between frames", good, "closed"},
      {"early end", good + frame(2, 1, ""), "early end"},
      {"end of other index", good + frame(1, 1, "CCC") + frame(2, 1, ""), "wrong index"},
      {"end with payload", good + frame(1, 1, "CCC") + frame(2, 2, "x"), "end with payload"},
      {"chunk repeated", good + good, "wrong index"},
      {"chunk too short", frame(1, 0, "AAAAAAAA"), "wrong length"},
      {"chunk too long", frame(1, 0, first + "C"), "wrong length"},
      {"chunk after the last", good + frame(1, 1, "CCC") + frame(1, 2, "x"), "wrong length"},
      {"empty chunk", good + frame(1, 1, ""), "wrong length"},
      {"digest", frame(1, 0, first, digest ^ 1), "wrong digest"},
      {"length beyond what is sent", frame(1, 0, first, digest, 1), "closed"},
      {"absurd length", frame(1, 0, first, digest, std::int64_t{1} << 62), "closed"},
      {"kind 0", frame(0, 0, ""), "unknown kind"},
      {"kind 4", frame(4, 0, ""), "unknown kind"},
      {"abort", good + frame(3, 0, "why"), "abort: why"},
      {"abort too long", frame(3, 0, std::string(4097, 'x')), "abort reason too long"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(received(row.bytes), row.fault) << row.name;
  }
}

}  // namespace
}  // namespace pushrod::transports::tcp
