// SPDX-License-Identifier: Apache-2.0
#include "ranks/meeting.h"

#include <charconv>
#include <csignal>
#include <mutex>
#include <optional>
#include <utility>

#include "ranks/control_call.h"
#include "ranks/gather.h"
#include "ranks/link.h"
#include "ranks/rendezvous.h"
#include "ranks/run_id.h"
#include "ranks/tree_agreement.h"

namespace pushrod::ranks {

namespace {

void ignoreBrokenPipes() {
  struct sigaction current {};

  if (::sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) {
    struct sigaction ignore {};

    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, nullptr);
  }
}

Status controlThreadBusy() {
  return Status(Code::kDeadlineExceeded, "the control thread did not answer in time");
}

/// What a join on the control thread answered, for the waiting caller's thread.
class Answer {
 public:
  void set(const Status& status) {
    const std::lock_guard lock(mutex_);
    status_ = status;
  }

  [[nodiscard]] std::optional<Status> get() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Status> status_;
};

}  // namespace

struct Ranks::Impl {
  Impl(net::IoExecutor& owner, RanksOptions given, std::unique_ptr<Rendezvous> meeting)
      : executor(owner),
        options(std::move(given)),
        rendezvous(std::move(meeting)),
        place(TreePlace::of(options.rank.rank, options.rank.size, Link::fanOut(options.rank.size))),
        agreement(
            *rendezvous,
            {[this](std::uint64_t epoch, Interrupt& interrupt, Deadline deadline) {
               return meet(epoch, interrupt, deadline);
             },
             [this](std::uint64_t epoch, const Status& status) { tellOthers(epoch, status); }}) {}

  [[nodiscard]] std::string linkKey(int of) const {
    return rendezvous->key("link/" + std::to_string(of));
  }

  Status meet(std::uint64_t epoch, Interrupt& interrupt, Deadline deadline);
  /// Takes the ranks below; they find us in the store.
  Status serveBelow(Deadline deadline);
  Status awaitOthers(std::uint64_t epoch, Interrupt& interrupt, Deadline deadline);
  Status listen(Deadline deadline);
  Status join(std::uint64_t epoch, Interrupt& interrupt, Deadline deadline);
  /// Where a rank's link listens.
  Status find(int of, LinkAddress& address, Interrupt& interrupt, Deadline deadline);
  Result<std::vector<int>> missing(Deadline deadline);
  void tellOthers(std::uint64_t epoch, const Status& status);

  net::IoExecutor& executor;
  RanksOptions options;
  std::unique_ptr<Rendezvous> rendezvous;
  TreePlace place;
  std::uint16_t port = 0;  ///< of our link; 0: does not listen
  bool published = false;
  bool complete = false;  ///< rank 0: all ranks were connected once
  LinkAddress above;      ///< once found
  LinkAddress rankZero;   ///< once found
  std::unique_ptr<Link> link;
  TreeAgreement agreement;
};

Result<std::vector<int>> Ranks::Impl::missing(Deadline deadline) {
  auto ranks = onControlThread(executor, deadline, [each = link.get()] { return each->missing(); });
  if (!ranks) {
    return controlThreadBusy();
  }
  return std::move(*ranks);
}

Status Ranks::Impl::listen(Deadline deadline) {
  using Port = Result<std::uint16_t>;
  auto opened = onControlThread(
      executor,
      deadline,
      [each = link.get(), address = rendezvous->address(), token = rendezvous->run()]() -> Port {
        const Status listening = each->listen(address, token);
        return listening.ok() ? Port(each->port()) : Port(listening);
      });
  if (!opened) {
    return controlThreadBusy();
  }
  if (!*opened) {
    return opened->status();
  }
  port = **opened;
  return Status();
}

Status Ranks::Impl::serveBelow(Deadline deadline) {
  if (port == 0) {
    const Status opened = listen(deadline);
    if (!opened) {
      return opened;
    }
  }
  if (!published) {
    const Status told = rendezvous->store().set(
        linkKey(options.rank.rank), rendezvous->address() + " " + std::to_string(port), deadline);
    if (!told) {
      return told;
    }
    published = true;
  }
  return Status();
}

Status Ranks::Impl::awaitOthers(std::uint64_t epoch, Interrupt& interrupt, Deadline deadline) {
  // A rank that was connected before and is gone comes back soon or never.
  const Deadline limit =
      complete ? deadline.earliest(Deadline::after(executor, options.agreement)) : deadline;
  PollPause pause;
  while (true) {
    const auto absent = missing(deadline);
    if (!absent) {
      return absent.status();
    }
    if (absent->empty()) {
      complete = true;
      return Status();
    }
    const Status waited = pause.wait(interrupt, limit);
    if (waited.code() == Code::kDeadlineExceeded) {
      Origin origin;
      origin.rank = absent->front();
      return Status(complete ? Code::kUnavailable : Code::kDeadlineExceeded,
                    rankList(*absent) + " of " + std::to_string(options.rank.size) +
                        (complete ? " closed the link and did not come back for push "
                                  : " did not connect to rank 0 for push ") +
                        std::to_string(epoch))
          .at(origin);
    }
    if (!waited) {
      return waited;
    }
  }
}

Status Ranks::Impl::find(int of, LinkAddress& address, Interrupt& interrupt, Deadline deadline) {
  if (!address.address.empty()) {
    return Status();
  }
  const std::string who = "rank " + std::to_string(of);
  const auto text = awaitKey(rendezvous->store(), linkKey(of), interrupt, deadline);
  if (!text) {
    return text.status().prefixed("waiting for the link of " + who);
  }
  const auto space = text->find(' ');
  const char* const end = text->data() + text->size();
  if (space == std::string::npos ||
      std::from_chars(text->data() + space + 1, end, address.port).ptr != end) {
    return Status(Code::kUnavailable, who + " published an unusable address of its link");
  }
  address.address = text->substr(0, space);
  return Status();
}

Status Ranks::Impl::join(std::uint64_t epoch, Interrupt& interrupt, Deadline deadline) {
  const auto absent = missing(deadline);
  if (!absent || absent->empty()) {
    return absent.status();
  }
  Status found = find(place.parent, above, interrupt, deadline);
  if (found.ok()) {
    found = find(0, rankZero, interrupt, deadline);
  }
  if (!found) {
    return found;
  }
  auto answer = std::make_shared<Answer>();
  executor.post([each = link.get(),
                 parent = above,
                 root = rankZero,
                 token = rendezvous->run(),
                 epoch,
                 deadline,
                 answer] {
    each->join(parent, root, token, epoch, deadline, [answer](const Status& status) {
      answer->set(status);
    });
  });
  // The control thread ends the join by the deadline; the second bound is for a busy one.
  const Deadline limit = Deadline::at(deadline.when() + Duration{1000});
  PollPause pause;
  while (true) {
    if (const auto status = answer->get()) {
      return *status;
    }
    const Status waited = pause.wait(interrupt, deadline.isNever() ? deadline : limit);
    if (!waited) {
      return waited.code() == Code::kDeadlineExceeded ? controlThreadBusy() : waited;
    }
  }
}

Status Ranks::Impl::meet(std::uint64_t epoch, Interrupt& interrupt, Deadline deadline) {
  const Status met =
      rendezvous->meet(interrupt, deadline.earliest(Deadline::after(executor, options.connect)));
  if (!met) {
    return met;
  }
  if (!place.children.empty()) {
    const Status served = serveBelow(deadline);
    if (!served) {
      return served;
    }
  }
  return options.rank.rank == 0 ? awaitOthers(epoch, interrupt, deadline)
                                : join(epoch, interrupt, deadline);
}

void Ranks::Impl::tellOthers(std::uint64_t epoch, const Status& status) {
  VoteKey key;
  key.epoch = epoch;
  key.phase = Phase::kCheck;
  executor.post([each = link.get(), key, status] { each->stop(key, status); });
}

Ranks::Ranks(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Ranks::~Ranks() {
  destroyOnControlThread(impl_->executor, impl_->link);
}

Result<std::unique_ptr<Ranks>> Ranks::create(net::IoExecutor& executor,
                                             RanksOptions options,
                                             LogSink* log) {
  auto rendezvous = Rendezvous::create(
      executor,
      {options.rank, options.config, options.job, options.privateDirectory, options.hostId});
  if (!rendezvous) {
    return rendezvous.status();
  }
  ignoreBrokenPipes();
  LinkOptions linkOptions{options.rank.rank, options.rank.size, options.agreement, log};
  auto impl = std::make_unique<Impl>(executor, std::move(options), std::move(*rendezvous));
  // Made here, used on the control thread only after the first post.
  impl->link = std::make_unique<Link>(executor, linkOptions);
  return std::make_unique<Ranks>(std::move(impl));
}

Agreement& Ranks::agreement() {
  return impl_->agreement;
}

RankLink& Ranks::link() {
  return *impl_->link;
}

Link& Ranks::linkWithPositions() {
  return *impl_->link;
}

RecordExchange& Ranks::records() {
  return *impl_->link;
}

std::unique_ptr<Gather> Ranks::gather() {
  return std::make_unique<Gather>(*impl_->rendezvous);
}

const std::vector<std::string>& Ranks::hostIds() const {
  return impl_->rendezvous->hostIds();
}

std::string Ranks::describe() const {
  return impl_->rendezvous->describe();
}

}  // namespace pushrod::ranks
