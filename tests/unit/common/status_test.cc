// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <pushrod/status.h>

namespace pushrod {
namespace {

Status failure(const std::string& text, int rank = -1) {
  Origin origin;
  origin.rank = rank;
  return Status(Code::kUnavailable, text).at(origin);
}

TEST(Status, TheFirstCauseStaysAndLaterOnesAreNotes) {
  Status status;
  status.merge(failure("first", 2));
  status.merge(Status());
  status.merge(failure("second", 1));
  EXPECT_EQ(status.message(), "first");
  EXPECT_EQ(status.origin().rank, 2);
  ASSERT_EQ(status.notes().size(), 1U);
  EXPECT_EQ(status.notes().front(), "rank 1: second [unavailable]");
}

TEST(Status, OneFailureToldTwiceIsToldOnce) {
  Status status = failure("first", 2);
  status.merge(failure("first", 2));
  EXPECT_TRUE(status.notes().empty());
  status.merge(failure("first", 3));
  status.merge(failure("first", 3));
  EXPECT_EQ(status.notes().size(), 1U);
}

TEST(Status, NotesAreBoundedAndTheRestIsCounted) {
  Status status = failure("first");
  for (int i = 0; i < 1000; ++i) {
    status.merge(failure("later " + std::to_string(i)));
  }
  EXPECT_LT(status.notes().size(), 100U);
  const std::size_t kept = status.notes().size() - 1;
  EXPECT_EQ(status.notes().back(), std::to_string(1000 - kept) + " more errors");
}

TEST(Status, AnOriginFillsOnlyWhatIsNotKnown) {
  Origin where;
  where.rank = 3;
  where.engine = "e1";
  where.phase = Phase::kStart;
  where.attempt = 2;
  Origin later;
  later.rank = 0;
  later.engine = "e2";
  const Status status = Status(Code::kInternal, "odd").at(where).at(later);
  EXPECT_EQ(status.toString(), "rank 3, engine e1, start, attempt 2: odd [internal]");
  EXPECT_EQ(Status().toString(), "ok");
}

TEST(Status, APrefixSaysWhere) {
  EXPECT_EQ(failure("no room").prefixed("/dev/shm").message(), "/dev/shm: no room");
}

}  // namespace
}  // namespace pushrod
