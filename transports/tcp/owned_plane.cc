// SPDX-License-Identifier: Apache-2.0
// The channel of several sources: invited, joined, opened, ended. The pass stands in owned_pass.cc.
#include "transports/tcp/owned_plane.h"

#include <algorithm>
#include <utility>

#include "transports/chunk_plan.h"
#include "transports/tcp/invitation.h"
#include "transports/update_info.h"

namespace pushrod::transports::tcp {

namespace {

/// Begins the answer of a source that could not do what it was asked.
constexpr char kFailed = '!';
constexpr std::string_view kSound = "sound";

Status sourceFailed(int rank, const std::string& why) {
  Origin origin;
  origin.rank = rank;
  return Status(Code::kFailedPrecondition, why, Outcome::kNotSent).at(origin);
}

}  // namespace

OwnedPlane::OwnedPlane(int rank, const TransportConfig& config, Duration progress)
    : rank_(rank), config_(config), own_(config, progress) {}

Result<std::vector<std::string>> OwnedPlane::announce(const ChannelSpec&) {
  return Status(Code::kInternal, "a channel of several sources is announced by invitation");
}

Result<std::string> OwnedPlane::updateInfo(const Manifest&) {
  return Status(Code::kInternal, "a stream of several sources is one update per run");
}

Result<OwnedPass> OwnedPlane::plan(const Manifest& manifest, const std::vector<int>& owners) {
  OwnedPass pass;
  for (const OwnerRun& run : ownerRuns(manifest)) {
    const auto at = std::lower_bound(owners.begin(), owners.end(), run.owner);
    if (at == owners.end() || *at != run.owner) {
      return Status(Code::kInternal,
                    "rank " + std::to_string(run.owner) + " owns tensors and is no source");
    }
    const Manifest tensors = tensorsOf(manifest, run);
    for (const std::size_t end : stepEnds(tensors, config_.buffer)) {
      pass.ends.push_back(run.first + end);
    }
    pass.bodies.push_back(std::make_shared<const std::string>(
        "{" + tensorLists(tensors) + ", \"src\": " + std::to_string(at - owners.begin()) + "}"));
  }
  return pass;
}

bool OwnedPlane::hasSources(const std::vector<int>& owners) const {
  return sources_ == owners;
}

Result<std::string> OwnedPlane::invite(const ChannelSpec& spec, const std::vector<int>& owners) {
  Result<Roster> roster =
      Roster::make(spec.engines, config_.group, static_cast<std::uint32_t>(owners.size()));
  if (!roster) {
    return roster.status();
  }
  roster_ = std::move(*roster);
  sources_ = owners;
  engines_ = spec.engines;
  {
    const std::lock_guard lock(mutex_);
    workers_.assign(engines_.size(), 0);
    for (const Slot& slot : roster_.slots()) {
      workers_[slot.engine] += 1;
    }
    names_.clear();
    for (const PlaneEngine& engine : engines_) {
      names_.push_back(engine.name);
    }
    ownBytes_.assign(engines_.size(), 0);
  }
  return Invitation{owners, roster_.ids(), engines_}.encode();
}

std::string OwnedPlane::join(std::string_view invitation) {
  if (invitation.empty() || invitation == kOpen) {
    return {};
  }
  if (invitation == kKeep) {
    if (!source_) {
      return {};
    }
    return own_.ready() ? std::string(kSound)
                        : kFailed + std::string("the tcp connections of this rank are closed");
  }
  own_.abort(Status(Code::kAborted, "the channel is built anew"));
  opened_ = false;
  source_ = false;
  Result<Invitation> read = Invitation::decode(invitation);
  if (!read) {
    return kFailed + read.status().message();
  }
  {
    const std::lock_guard lock(mutex_);
    interrupted_ = Status();
  }
  source_ = std::binary_search(read->owners.begin(), read->owners.end(), rank_);
  if (!source_) {
    return {};
  }
  Result<Roster> roster =
      Roster::make(read->engines, config_.group, static_cast<std::uint32_t>(read->owners.size()));
  if (!roster || !roster->setIds(read->ids)) {
    return kFailed + (roster ? std::string("rank 0's invitation names other channels than this "
                                           "rank's configuration")
                             : roster.status().message());
  }
  const Result<std::vector<Endpoint>> listening = own_.listen(std::move(*roster), read->engines);
  return listening ? encodeEndpoints(*listening) : kFailed + listening.status().message();
}

Status OwnedPlane::soundness(const Answers& answers) {
  for (const int rank : sources_) {
    const auto place = static_cast<std::size_t>(rank);
    if (place >= answers.size() || answers[place] != kSound) {
      return Status(Code::kUnavailable,
                    "the tcp connections of rank " + std::to_string(rank) + " are closed");
    }
  }
  return {};
}

Result<std::vector<std::string>> OwnedPlane::initInfos(const Answers& answers) {
  std::vector<std::vector<Endpoint>> endpoints(engines_.size());
  for (const int rank : sources_) {
    const auto place = static_cast<std::size_t>(rank);
    const std::string answer = place < answers.size() ? answers[place] : std::string();
    if (answer.starts_with(kFailed)) {
      return sourceFailed(rank, answer.substr(1));
    }
    const Result<std::vector<Endpoint>> listening = decodeEndpoints(answer);
    if (!listening || listening->size() != engines_.size()) {
      return sourceFailed(rank, "it has not said where it listens for every engine");
    }
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      endpoints[i].push_back((*listening)[i]);
    }
  }
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    texts.push_back(roster_.initInfo(i, endpoints[i], config_));
  }
  return texts;
}

bool OwnedPlane::ready() const {
  return opened_ && (!source_ || own_.ready());
}

Status OwnedPlane::open(Deadline deadline) {
  if (source_) {
    if (Status opened = own_.open(deadline); !opened.ok()) {
      return opened;
    }
  }
  opened_ = true;
  return trouble();
}

Status OwnedPlane::trouble() const {
  const std::lock_guard lock(mutex_);
  return interrupted_;
}

void OwnedPlane::interrupt(const Status& reason) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (interrupted_.ok()) {
      interrupted_ = reason;
    }
  }
  changed_.notify_all();
  own_.interrupt(reason);
}

void OwnedPlane::abort(const Status& reason) noexcept {
  opened_ = false;
  own_.abort(reason);
}

}  // namespace pushrod::transports::tcp
