// SPDX-License-Identifier: Apache-2.0
#include "ranks/run_id.h"

#include <utility>

#include "common/ids.h"

namespace pushrod::ranks {

namespace {

constexpr char kRefusal = '!';

Status sizesDiffer(int size, int other, const std::string& theirs) {
  return Status(Code::kInvalidArgument,
                "rank 0 was started as one of " + std::to_string(size) + " ranks, rank " +
                    std::to_string(other) + " as one of " + theirs +
                    "; start all ranks of a job with the same number");
}

/// A failure in waiting for others, in words if it is the limit that ended it.
Status inWords(const Status& status,
               const std::string& who,
               const Store& store,
               const std::string& base) {
  if (status.code() != Code::kDeadlineExceeded) {
    return status;
  }
  // Ranks that were given another job meet elsewhere, and cannot compare their configuration.
  return Status(Code::kDeadlineExceeded,
                who + " did not come to '" + base + "' in the ranks' store " + store.describe() +
                    " in time; job and store must be the same on all ranks");
}

}  // namespace

RunAgreement::RunAgreement(std::string base, const Rank& rank, std::string hostId)
    : base_(std::move(base)), rank_(rank.rank), size_(rank.size) {
  if (rank_ > 0) {
    hello_ = common::toHex(common::randomId());
    hello_ += ' ';
    hello_ += std::to_string(size_);
    if (!hostId.empty()) {
      hello_ += ' ';
      hello_ += hostId;
    }
  } else {
    hostIds_.resize(static_cast<std::size_t>(size_));
    hostIds_.front() = std::move(hostId);
  }
}

std::string RunAgreement::helloKey(int rank) const {
  return base_ + "/" + run_ + "/hello/" + std::to_string(rank);
}

std::string RunAgreement::welcomeKey(int rank) const {
  return base_ + "/" + run_ + "/welcome/" + std::to_string(rank);
}

Status RunAgreement::greet(Store& store, int rank, const std::string& hello, Deadline deadline) {
  // An id of its own, the number of ranks, and the host's id where it has one.
  const auto space = hello.find(' ');
  std::string theirs = space == std::string::npos ? hello : hello.substr(space + 1);
  const auto second = theirs.find(' ');
  if (second != std::string::npos) {
    hostIds_[static_cast<std::size_t>(rank)] = theirs.substr(second + 1);
    theirs.resize(second);
  }
  if (theirs == std::to_string(size_)) {
    return store.set(welcomeKey(rank), hello, deadline);
  }
  const Status refusal = sizesDiffer(size_, rank, theirs);
  const Status told = store.set(welcomeKey(rank), kRefusal + refusal.message(), deadline);
  return told.ok() ? refusal : told;
}

Status RunAgreement::greetAll(Store& store, Deadline deadline) {
  std::vector<std::string> keys;
  for (const int rank : missing_) {
    keys.push_back(helloKey(rank));
  }
  const auto hellos = store.get(keys, deadline);
  if (!hellos) {
    return hellos.status();
  }
  Status first;
  std::vector<int> still;
  for (std::size_t i = 0; i < missing_.size(); ++i) {
    const auto& hello = (*hellos)[i];
    const Status greeted = hello ? greet(store, missing_[i], *hello, deadline) : Status();
    if (!hello || !greeted) {
      still.push_back(missing_[i]);
    }
    first.merge(greeted);
  }
  missing_ = std::move(still);
  return first;
}

Status RunAgreement::publish(Store& store, Deadline deadline) {
  const auto old = store.get({base_ + "/run"}, deadline);
  if (!old) {
    return old.status();
  }
  if (old->front()) {
    const Status erased = store.eraseBelow(base_ + "/" + *old->front(), deadline);
    if (!erased) {
      return erased;
    }
  }
  const std::string run = common::toHex(common::randomId());
  const Status published = store.set(base_ + "/run", run, deadline);
  if (published) {
    run_ = run;
    for (int rank = 1; rank < size_; ++rank) {
      missing_.push_back(rank);
    }
  }
  return published;
}

Result<std::string> RunAgreement::lead(Store& store, Interrupt& interrupt, Deadline deadline) {
  Status status = run_.empty() ? publish(store, deadline) : Status();
  PollPause pause;
  while (status.ok() && !missing_.empty()) {
    status = greetAll(store, deadline);
    if (status.ok() && !missing_.empty()) {
      status = pause.wait(interrupt, deadline);
    }
  }
  if (status.ok()) {
    return run_;
  }
  return missing_.empty()
             ? status
             : inWords(status, rankList(missing_) + " of " + std::to_string(size_), store, base_);
}

Result<std::string> RunAgreement::follow(Store& store, Interrupt& interrupt, Deadline deadline) {
  PollPause pause;
  while (true) {
    const auto seen = store.get({base_ + "/run", welcomeKey(rank_)}, deadline);
    if (!seen) {
      return inWords(seen.status(), "rank 0", store, base_);
    }
    const auto& current = seen->front();
    const auto& welcome = seen->back();
    if (!run_.empty() && welcome == hello_) {
      // Rank 0 has read the hello: nobody needs the two any more.
      (void)store.erase({helloKey(rank_), welcomeKey(rank_)}, deadline);
      return run_;
    }
    if (!run_.empty() && welcome && welcome->front() == kRefusal) {
      return Status(Code::kInvalidArgument, welcome->substr(1));
    }
    if (current && *current != run_) {
      run_ = *current;
      const Status said = store.set(helloKey(rank_), hello_, deadline);
      if (said.code() == Code::kUnavailable) {
        // Rank 0 may be removing this dead run's folder at this moment.
        run_.clear();
      } else if (!said) {
        return inWords(said, "rank 0", store, base_);
      }
    }
    const Status waited = pause.wait(interrupt, deadline);
    if (!waited) {
      return inWords(waited, "rank 0", store, base_);
    }
  }
}

Result<std::string> RunAgreement::agree(Store& store, Interrupt& interrupt, Deadline deadline) {
  return rank_ == 0 ? lead(store, interrupt, deadline) : follow(store, interrupt, deadline);
}

std::string rankList(const std::vector<int>& ranks) {
  constexpr std::size_t kShown = 8;
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size() && i < kShown; ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > kShown) {
    text += " and " + std::to_string(ranks.size() - kShown) + " more";
  }
  return text;
}

}  // namespace pushrod::ranks
