// SPDX-License-Identifier: Apache-2.0
#include "tools/engine_group.h"

#include <future>
#include <utility>

#include "common/log.h"
#include "net/run_and_wait.h"
#include "orchestrator/factory.h"

namespace pushrod::tools {
namespace {

/// Of one round of calls; outlives whichever thread is done with it first.
struct Round {
  std::promise<void> done;
  std::vector<std::optional<Call>> calls;
  std::vector<Reply> replies;
  std::size_t open = 0;
};

/// What a client may need beyond a call's deadline to say that it passed.
constexpr Duration kGrace = std::chrono::seconds(5);

}  // namespace

Result<std::unique_ptr<EngineGroup>> EngineGroup::create(const Config& config) {
  std::unique_ptr<EngineGroup> group(new EngineGroup());
  group->log_ = std::make_unique<common::StderrLogSink>(
      common::LogOptions{.job = config.job, .level = LogLevel::kWarning});
  Status status;
  net::runAndWait(group->executor_, [&] {
    auto clients = orchestrator::makeEngineClients(config, group->executor_, nullptr, *group->log_);
    status = clients.status();
    if (clients) {
      group->clients_ = std::move(*clients);
    }
  });
  if (!status) {
    return status;
  }
  for (const auto& client : group->clients_) {
    group->members_.push_back(
        {.name = client->name(), .url = client->url(), .failure = {}, .identity = {}, .last = {}});
  }
  return group;
}

EngineGroup::~EngineGroup() {
  net::runAndWait(executor_, [this] { clients_.clear(); });
}

void EngineGroup::ask(const std::function<std::optional<CallKind>(std::size_t)>& choose,
                      Duration limit) {
  const auto round = std::make_shared<Round>();
  round->replies.resize(members_.size());
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto kind = members_[i].failure ? choose(i) : std::nullopt;
    round->calls.emplace_back();
    if (kind) {
      round->calls.back().emplace().kind = *kind;
      ++round->open;
    }
  }
  if (round->open == 0) {
    return;
  }
  std::future<void> finished = round->done.get_future();
  executor_.post([this, round, deadline = Deadline::after(executor_, limit)] {
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      if (round->calls[i]) {
        clients_[i]->call(*round->calls[i], deadline, [round, i](Reply reply) {
          round->replies[i] = std::move(reply);
          if (--round->open == 0) {
            round->done.set_value();
          }
        });
      }
    }
  });
  const bool ended = finished.wait_for(limit + kGrace) == std::future_status::ready;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (!round->calls[i]) {
      continue;
    }
    if (!ended) {
      members_[i].failure = Status(Code::kInternal, "its call did not end by its limit");
      continue;
    }
    members_[i].last = std::move(round->replies[i]);
    members_[i].failure = members_[i].last.status;
    if (members_[i].last.identity) {
      members_[i].identity = members_[i].last.identity;
    }
  }
}

void EngineGroup::askAll(CallKind kind, Duration limit) {
  ask([kind](std::size_t) { return std::optional(kind); }, limit);
}

}  // namespace pushrod::tools
