// SPDX-License-Identifier: Apache-2.0
#include "tools/private_folder.h"

#include <chrono>
#include <filesystem>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/unit/tools/scratch_folder.h"

namespace pushrod::tools {
namespace {

using testing::ScratchFolder;
namespace fs = std::filesystem;

TEST(PrivateFolder, IsOursAloneAndRemovedWithAllItHolds) {
  const ScratchFolder base;
  std::string path;
  {
    const auto folder = PrivateFolder::create(base.path());
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    path = (*folder)->path();
    struct stat state = {};
    ASSERT_EQ(::stat(path.c_str(), &state), 0);
    EXPECT_EQ(state.st_mode & 0777U, 0700U);
    fs::create_directories((*folder)->file("store/deep"));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(PrivateFolder, ALivingOnesStaysADeadOnesGoes) {
  const ScratchFolder base;
  int up[2];
  ASSERT_EQ(::pipe(up), 0);
  const pid_t killed = ::fork();
  if (killed == 0) {
    const auto folder = PrivateFolder::create(base.path());
    const char ok = folder.ok() ? '1' : '0';
    [[maybe_unused]] const ssize_t written = ::write(up[1], &ok, 1);
    ::pause();
    ::_exit(0);
  }
  char ok = '0';
  ASSERT_EQ(::read(up[0], &ok, 1), 1);
  ASSERT_EQ(ok, '1');
  const auto count = [&base] {
    return std::distance(fs::directory_iterator(base.path()), fs::directory_iterator());
  };
  {
    const auto folder = PrivateFolder::create(base.path());
    ASSERT_TRUE(folder.ok());
    EXPECT_EQ(count(), 2);  // The other process lives.
  }
  ::kill(killed, SIGKILL);
  ::waitpid(killed, nullptr, 0);
  EXPECT_EQ(count(), 1);
  const auto folder = PrivateFolder::create(base.path());
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(count(), 1);
  ::close(up[0]);
  ::close(up[1]);
}

TEST(PrivateFolder, AnOldOneThatWasNeverLockedGoesWhenItIsEmpty) {
  const ScratchFolder base;
  for (const char* name :
       {"pushrod.empty1", "pushrod.lock.1", "pushrod.filled", "pushrod.longer-name"}) {
    fs::create_directory(base.path(name));
  }
  base.write("pushrod.lock.1/lock.new", "");
  base.write("pushrod.filled/file", "x");
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(2);
  for (const auto& entry : fs::directory_iterator(base.path())) {
    fs::last_write_time(entry.path(), old);
  }
  fs::create_directory(base.path("pushrod.young1"));
  ASSERT_TRUE(PrivateFolder::create(base.path()).ok());
  EXPECT_FALSE(fs::exists(base.path("pushrod.empty1")));
  EXPECT_FALSE(fs::exists(base.path("pushrod.lock.1")));
  EXPECT_TRUE(fs::exists(base.path("pushrod.filled/file")));
  EXPECT_TRUE(fs::exists(base.path("pushrod.longer-name")));
  EXPECT_TRUE(fs::exists(base.path("pushrod.young1")));
}

TEST(PrivateFolder, WhatIsNotClearlyOursStays) {
  const ScratchFolder base;
  const ScratchFolder elsewhere;
  elsewhere.write("lock", "");
  fs::create_directory(base.path("pushrod.nolock"));
  fs::create_directory(base.path("other.folder"));
  std::ofstream(base.path("other.folder/lock")).put('x');
  base.write("pushrod.file", "x");
  fs::create_symlink(elsewhere.path(), base.path("pushrod.link"));
  ASSERT_TRUE(PrivateFolder::create(base.path()).ok());
  EXPECT_TRUE(fs::exists(base.path("pushrod.nolock")));
  EXPECT_TRUE(fs::exists(base.path("other.folder/lock")));
  EXPECT_TRUE(fs::exists(base.path("pushrod.file")));
  EXPECT_TRUE(fs::exists(elsewhere.path("lock")));
}

TEST(PrivateFolder, AnUnusableBaseIsAnError) {
  EXPECT_EQ(PrivateFolder::create("/no/such/folder").status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace pushrod::tools
