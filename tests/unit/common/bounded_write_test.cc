// SPDX-License-Identifier: Apache-2.0
#include "common/bounded_write.h"

#include <array>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

namespace pushrod::common {
namespace {

using std::chrono::milliseconds;

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0); }

  ~Pipe() {
    closeReader();
    ::close(ends_[1]);
  }

  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  [[nodiscard]] int writer() const { return ends_[1]; }

  std::string read(std::size_t most) {
    std::string text(most, '\0');
    const ssize_t got = ::read(ends_[0], text.data(), most);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

  void fill() {
    while (writeWithin(writer(), std::string(4096, '.'), milliseconds::zero())) {
    }
  }

  void closeReader() {
    if (ends_[0] >= 0) {
      ::close(ends_[0]);
      ends_[0] = -1;
    }
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

TEST(BoundedWrite, ATextArrivesAsItIs) {
  Pipe pipe;
  EXPECT_TRUE(writeWithin(pipe.writer(), "a line\n", milliseconds::zero()));
  EXPECT_EQ(pipe.read(100), "a line\n");
}

TEST(BoundedWrite, AReaderThatStoppedIsWaitedForNoLongerThanTheLimit) {
  Pipe pipe;
  pipe.fill();
  EXPECT_FALSE(writeWithin(pipe.writer(), "lost", milliseconds(20)));
  EXPECT_FALSE(writeWithin(pipe.writer(), std::string(100000, 'x'), milliseconds(20)));
  while (pipe.read(4096).back() == '.' &&
         !writeWithin(pipe.writer(), "kept", milliseconds::zero())) {
  }
  std::string rest;
  while (!rest.ends_with("kept")) {
    rest = pipe.read(4096);
  }
  EXPECT_EQ(rest.find("lost"), std::string::npos);
}

TEST(BoundedWrite, WhatCannotBeWrittenIsAnErrorAtOnce) {
  Pipe pipe;
  ::signal(SIGPIPE, SIG_IGN);
  pipe.closeReader();
  EXPECT_FALSE(writeWithin(pipe.writer(), "text", milliseconds(60000)));
  EXPECT_FALSE(writeWithin(-1, "text", milliseconds(20)));
}

}  // namespace
}  // namespace pushrod::common
