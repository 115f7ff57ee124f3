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
        agreement(
            *rendezvous,
            {[this](std::uint64_t epoch, Interrupt& interrupt, Deadline deadline) {
               return meet(epoch, interrupt, deadline);
             },
             [this](std::uint64_t epoch, const Status& status) { tellOthers(epoch, status); }}) {}

  Status meet(std::uint64_t epoch, Interrupt& interrupt, Deadline deadline);
  Status awaitOthers(std::uint64_t epoch, Interrupt& interrupt, Deadline deadline);
  Status listen(Deadline deadline);
  Status join(std::uint64_t epoch, Interrupt& interrupt, Deadline deadline);
  Result<std::vector<int>> missing(Deadline deadline);
  void tellOthers(std::uint64_t epoch, const Status& status);

  net::IoExecutor& executor;
  RanksOptions options;
  std::unique_ptr<Rendezvous> rendezvous;
  bool listening = false;
  bool complete = false;    ///< all ranks were connected once
  std::string linkAddress;  ///< rank 0's "address port"
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
  auto port = onControlThread(
      executor,
      deadline,
      [each = link.get(), address = rendezvous->address(), token = rendezvous->run()]() -> Port {
        const Status opened = each->listen(address, token);
        return opened.ok() ? Port(each->port()) : Port(opened);
      });
  if (!port) {
    return controlThreadBusy();
  }
  if (!*port) {
    return port->status();
  }
  listening = true;
  linkAddress = rendezvous->address() + " " + std::to_string(**port);
  return Status();
}

Status Ranks::Impl::awaitOthers(std::uint64_t epoch, Interrupt& interrupt, Deadline deadline) {
  if (!listening) {
    const Status opened = listen(deadline);
    if (!opened) {
      return opened;
    }
  }
  if (!complete) {
    const Status told = rendezvous->store().set(rendezvous->key("link"), linkAddress, deadline);
    if (!told) {
      return told;
    }
  }
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

Status Ranks::Impl::join(std::uint64_t epoch, Interrupt& interrupt, Deadline deadline) {
  const auto absent = missing(deadline);
  if (!absent || absent->empty()) {
    return absent.status();
  }
  if (linkAddress.empty()) {
    auto address = awaitKey(rendezvous->store(), rendezvous->key("link"), interrupt, deadline);
    if (!address) {
      return address.status().prefixed("waiting for rank 0's link");
    }
    linkAddress = std::move(*address);
  }
  const auto space = linkAddress.find(' ');
  std::uint16_t port = 0;
  const char* end = linkAddress.data() + linkAddress.size();
  if (space == std::string::npos ||
      std::from_chars(linkAddress.data() + space + 1, end, port).ptr != end) {
    return Status(Code::kUnavailable, "rank 0 published an unusable address of its link");
  }
  auto answer = std::make_shared<Answer>();
  executor.post([each = link.get(),
                 address = linkAddress.substr(0, space),
                 port,
                 token = rendezvous->run(),
                 epoch,
                 deadline,
                 answer] {
    each->join(address, port, token, epoch, deadline, [answer](const Status& status) {
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
      executor, {options.rank, options.config, options.job, options.privateDirectory});
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

std::unique_ptr<Gather> Ranks::gather() {
  return std::make_unique<Gather>(*impl_->rendezvous);
}

std::string Ranks::describe() const {
  return impl_->rendezvous->describe();
}

}  // namespace pushrod::ranks
