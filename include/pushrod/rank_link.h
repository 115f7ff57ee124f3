// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <pushrod/agreement.h>

namespace pushrod {

/// Hears what other ranks say out of band. Called on the control thread.
class RankLinkListener {
 public:
  RankLinkListener() = default;
  RankLinkListener(const RankLinkListener&) = delete;
  RankLinkListener& operator=(const RankLinkListener&) = delete;
  virtual ~RankLinkListener() = default;

  /// Rank `rank` failed inside the collective named by `key` and will not finish it: interrupt
  /// ours.
  virtual void onStop(int rank, const VoteKey& key, const Status& reason) = 0;
  /// The pass of `key` cannot succeed any more, as rank `rank` found: what this rank sends in it
  /// ends. Its gathers go on to the next vote.
  virtual void onHalt(int rank, const VoteKey& key, const Status& reason) = 0;
  /// Rank `rank` is gone: its connection closed or it was silent for longer than
  /// timeouts.agreement.
  virtual void onLost(int rank, const Status& reason) = 0;
  /// Rank 0's final word on push `epoch`, for ranks whose last vote died.
  virtual void onVerdict(std::uint64_t epoch, const Verdict& verdict) = 0;
  /// This process did not run for `silence`: it was stopped. It must fence itself before any call.
  virtual void onOversleep(Duration silence) = 0;
};

/// Out-of-band messages between ranks, over TCP connections that lead to rank 0. They only
/// interrupt; votes decide. Every function is called on the control thread and returns at once;
/// messages to a rank that is gone are dropped.
class RankLink {
 public:
  RankLink() = default;
  RankLink(const RankLink&) = delete;
  RankLink& operator=(const RankLink&) = delete;
  virtual ~RankLink() = default;

  /// `listener` must outlive the link or be replaced by null.
  virtual void setListener(RankLinkListener* listener) = 0;
  /// What the 1 s heartbeat tells about this rank from now on, with the time since the call that
  /// changed it.
  virtual void setPosition(const VoteKey& position) = 0;
  /// Tells every other rank that this one failed inside `key`.
  virtual void stop(const VoteKey& key, const Status& reason) = 0;
  /// Tells every other rank that the pass of `key` cannot succeed, so that all that send end it.
  virtual void halt(const VoteKey& key, const Status& reason) = 0;
  /// Rank 0 only: its final word, to every rank still connected.
  virtual void publishVerdict(std::uint64_t epoch, const Verdict& verdict) = 0;
};

}  // namespace pushrod
