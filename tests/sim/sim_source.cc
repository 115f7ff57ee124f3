// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_source.h"

#include <algorithm>
#include <sstream>

#include "transports/chunk_plan.h"
#include "transports/owner_runs.h"

namespace pushrod::sim {

namespace {

constexpr std::string_view kListens = "listens";
constexpr std::string_view kSound = "sound";

Status silent(int rank) {
  Origin origin;
  origin.rank = rank;
  return Status(Code::kUnavailable, "it does not listen", Outcome::kNotSent).at(origin);
}

}  // namespace

Result<transports::OwnedPass> SimSource::plan(const Manifest& manifest,
                                              const std::vector<int>& owners) {
  transports::OwnedPass pass;
  for (const transports::OwnerRun& run : transports::ownerRuns(manifest)) {
    for (const std::size_t end :
         transports::stepEnds(transports::tensorsOf(manifest, run), buffer_)) {
      pass.ends.push_back(run.first + end);
    }
    const auto source = std::lower_bound(owners.begin(), owners.end(), run.owner) - owners.begin();
    pass.bodies.push_back(std::make_shared<const std::string>("run " + std::to_string(run.first) +
                                                              " " + std::to_string(run.end) + " " +
                                                              std::to_string(source)));
  }
  return pass;
}

/// "7 2 0 3 e0 e1": channel 7 of two sources, the ranks 0 and 3, to these engines.
Result<std::string> SimSource::invite(const ChannelSpec& spec, const std::vector<int>& owners) {
  owners_ = owners;
  channel_ = plane_.nextChannel();
  engines_ = spec.engines.size();
  std::string text = std::to_string(channel_) + " " + std::to_string(owners.size());
  for (const int rank : owners) {
    text += " " + std::to_string(rank);
  }
  for (const PlaneEngine& engine : spec.engines) {
    text += " " + engine.name;
  }
  return text;
}

std::string SimSource::join(std::string_view invitation) {
  if (invitation.empty() || invitation == kOpen) {
    return {};
  }
  if (invitation == kKeep) {
    return plane_.isSource() && plane_.ready() ? std::string(kSound) : std::string();
  }
  plane_.abort(Status(Code::kAborted, "the channel is built anew"));
  std::istringstream text{std::string(invitation)};
  std::uint64_t channel = 0;
  std::size_t count = 0;
  text >> channel >> count;
  int place = -1;
  for (std::size_t i = 0; i < count; ++i) {
    int rank = -1;
    text >> rank;
    place = rank == rank_ ? static_cast<int>(i) : place;
  }
  std::vector<std::string> names;
  for (std::string name; text >> name;) {
    names.push_back(name);
  }
  plane_.listen(channel, place, names);
  return place < 0 ? std::string() : std::string(kListens);
}

Result<std::vector<std::string>> SimSource::initInfos(const transports::Answers& answers) {
  for (const int rank : owners_) {
    if (answers.at(static_cast<std::size_t>(rank)) != kListens) {
      return silent(rank);
    }
  }
  const std::string text = std::to_string(channel_) + " " + std::to_string(owners_.size());
  return std::vector<std::string>(engines_, text);
}

Status SimSource::soundness(const transports::Answers& answers) {
  for (const int rank : owners_) {
    if (answers.at(static_cast<std::size_t>(rank)) != kSound) {
      return silent(rank);
    }
  }
  return {};
}

}  // namespace pushrod::sim
