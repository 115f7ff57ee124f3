// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <pushrod/data_plane.h>
#include <pushrod/result.h>
#include <pushrod/tensor.h>

namespace pushrod::transports {

/// What rank 0 plans for a pass whose tensors are sent by several ranks.
struct OwnedPass {
  std::vector<std::size_t> ends;  ///< tensors after which a step ends; each run's end is one
  /// The `update_info` JSON text of each run, equal for all engines.
  std::vector<std::shared_ptr<const std::string>> bodies;
};

/// What the ranks answer to an invitation (OwnedStreams::join), by rank; empty: no source.
using Answers = std::vector<std::string>;

/// The other half of a plane whose tensors are sent by the ranks that own them: each of these ranks
/// is a source of the channel, connected to every worker, and each run of tensors of one owner is
/// an update of its own. Runs go one after another: rank 0 ends a run's last put when every engine
/// has answered it, so that no source sends while another's update is being read.
///
/// A channel is made of three parts: rank 0 invites, all ranks join, and rank 0 makes the engines'
/// init texts of what they answer. Every rank has this object, whether it is a source or not.
class OwnedStreams {
 public:
  OwnedStreams() = default;
  OwnedStreams(const OwnedStreams&) = delete;
  OwnedStreams& operator=(const OwnedStreams&) = delete;
  virtual ~OwnedStreams() = default;

  /// Rank 0, control thread. `owners`: those of the whole push, ascending.
  virtual Result<OwnedPass> plan(const Manifest& manifest, const std::vector<int>& owners) = 0;
  /// Rank 0, control thread: whether the channel at hand has these sources.
  [[nodiscard]] virtual bool hasSources(const std::vector<int>& owners) const = 0;
  /// Rank 0, control thread: the text that every rank joins a new channel by. Holds the channel's
  /// id: never log it.
  virtual Result<std::string> invite(const ChannelSpec& spec, const std::vector<int>& owners) = 0;
  /// Caller thread. A source ends its old channel, listens for the new one, and answers where. An
  /// empty invitation is none, and kKeep asks whether the old channel is sound.
  virtual std::string join(std::string_view invitation) = 0;
  /// Rank 0, control thread: one init text per engine. Fails with the first source's own failure.
  virtual Result<std::vector<std::string>> initInfos(const Answers& answers) = 0;
  /// Rank 0, control thread: the failure of the first source whose old channel is not sound.
  virtual Status soundness(const Answers& answers) = 0;
  /// Rank 0, control thread, before a pass begins: the engines whose answers it waits for.
  virtual void expect(const std::vector<std::string>& engines) = 0;
  /// Rank 0, control thread: `engine` has answered the first `runs` runs of the pass.
  virtual void answered(const std::string& engine, std::size_t runs) = 0;

  /// The invitation that keeps the channel at hand, and the one that opens what was announced.
  static constexpr std::string_view kKeep = "keep";
  static constexpr std::string_view kOpen = "open";
};

}  // namespace pushrod::transports
