// SPDX-License-Identifier: Apache-2.0
// Real segments in /dev/shm, under names of this process alone.
#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "transports/shm/segment.h"

namespace pushrod::transports::shm {
namespace {

std::string uniqueName(int rank) {
  return segmentName("unit-test", "p" + std::to_string(::getpid()), rank);
}

std::string pathOf(const std::string& name) {
  return "/dev/shm" + name;
}

bool present(const std::string& name) {
  return std::filesystem::exists(pathOf(name));
}

bool lockPresent(const std::string& name) {
  return std::filesystem::exists(pathOf(name) + ".lock");
}

TEST(ShmSegment, NamesAreThoseOfTheWireFormat) {
  EXPECT_EQ(segmentName("qwen3-rl", "0123abcd", 4), "/pushrod.qwen3-rl.0123abcd-4");
}

TEST(ShmSegment, IsWritableAndReadByItsName) {
  const std::string name = uniqueName(0);
  const auto segment = Segment::create(name, 10000);
  ASSERT_TRUE(segment.ok()) << segment.status().message();
  EXPECT_EQ((*segment)->size(), 10000U);
  std::memset((*segment)->data(), 0x5a, 10000);
  const int fd = ::shm_open(name.c_str(), O_RDONLY, 0);
  ASSERT_GE(fd, 0);

  struct stat found {};

  ASSERT_EQ(::fstat(fd, &found), 0);
  EXPECT_EQ(found.st_size, 10000);
  EXPECT_EQ(found.st_mode & 0777U, 0600U) << "weights are for this user alone";
  EXPECT_GE(found.st_blocks * 512, 10000) << "allocated, not promised";
  char last = 0;
  EXPECT_EQ(::pread(fd, &last, 1, 9999), 1);
  EXPECT_EQ(last, 0x5a);
  ::close(fd);
}

TEST(ShmSegment, ItsLockIsHeldForItsLifeAndBothGo) {
  const std::string name = uniqueName(1);
  {
    const auto segment = Segment::create(name, 1);
    ASSERT_TRUE(segment.ok());
    const int fd = ::open((pathOf(name) + ".lock").c_str(), O_RDWR);
    ASSERT_GE(fd, 0);
    EXPECT_NE(::flock(fd, LOCK_EX | LOCK_NB), 0);
    ::close(fd);
  }
  EXPECT_FALSE(present(name));
  EXPECT_FALSE(lockPresent(name));
}

TEST(ShmSegment, WhoHasMappedItKeepsReading) {
  const std::string name = uniqueName(2);
  auto segment = Segment::create(name, 4096);
  ASSERT_TRUE(segment.ok());
  std::memset((*segment)->data(), 'x', 4096);
  const int fd = ::shm_open(name.c_str(), O_RDONLY, 0);
  const void* const memory = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  ASSERT_NE(memory, MAP_FAILED);
  segment->reset();
  EXPECT_EQ(static_cast<const char*>(memory)[4095], 'x');
  ::munmap(const_cast<void*>(memory), 4096);
}

TEST(ShmSegment, ATakenNameIsAnErrorAndStays) {
  const std::string name = uniqueName(3);
  const auto first = Segment::create(name, 100);
  ASSERT_TRUE(first.ok());
  const auto second = Segment::create(name, 100);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kUnavailable);
  EXPECT_TRUE(present(name));
  EXPECT_TRUE(lockPresent(name));
}

TEST(ShmSegment, MemoryThatIsNotThereIsAnErrorAtOnceAndLeavesNothing) {
  const std::string name = uniqueName(4);
  const auto segment = Segment::create(name, std::uint64_t{1} << 55U);
  ASSERT_FALSE(segment.ok());
  EXPECT_EQ(segment.status().code(), Code::kUnavailable);
  EXPECT_NE(segment.status().message().find("36028797018963968 bytes"), std::string::npos)
      << segment.status().message();
  EXPECT_NE(segment.status().message().find("transport.buffers"), std::string::npos);
  EXPECT_FALSE(present(name));
  EXPECT_FALSE(lockPresent(name));
}

TEST(ShmSegment, ADeadOwnersIsRemovedAndALivingOnesIsNot) {
  const std::string dead = uniqueName(5);
  const std::string living = uniqueName(6);
  const auto own = Segment::create(living, 5000);
  ASSERT_TRUE(own.ok());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto segment = Segment::create(dead, 5000);
    // As SIGKILL ends it: no destructor.
    ::_exit(segment.ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(present(dead));
  EXPECT_GE(removeDeadSegments(), 1U);
  EXPECT_FALSE(present(dead));
  EXPECT_FALSE(lockPresent(dead));
  EXPECT_TRUE(present(living));
  EXPECT_TRUE(lockPresent(living));
  // The name is free again.
  EXPECT_TRUE(Segment::create(dead, 1).ok());
}

TEST(ShmSegment, OtherFilesAreLeftAlone) {
  const std::string other = "/dev/shm/pushrod-unit-" + std::to_string(::getpid()) + ".lock";
  ::close(::open(other.c_str(), O_CREAT | O_RDWR, 0600));
  removeDeadSegments();
  EXPECT_TRUE(std::filesystem::exists(other));
  std::filesystem::remove(other);
}

}  // namespace
}  // namespace pushrod::transports::shm
