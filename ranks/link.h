// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pushrod/log_sink.h>
#include <pushrod/rank_link.h>

#include "net/io_executor.h"
#include "net/listener.h"
#include "net/stream.h"
#include "ranks/link_frame.h"
#include "ranks/link_peers.h"
#include "ranks/record_exchange.h"
#include "ranks/tree_place.h"

namespace pushrod::ranks {

struct LinkOptions {
  int rank = 0;
  int size = 1;
  Duration agreement{60000};  ///< longest silence of a rank that lives
  LogSink* log = nullptr;     ///< may be null; else outlives the link
};

/// Where a rank listens for the link.
struct LinkAddress {
  std::string address;  ///< numeric
  std::uint16_t port = 0;
};

/// The rank link: TCP connections along a tree with rank 0 at the top, a star while that is small
/// enough. Everything, construction and destruction included, happens on the control thread. Ranks
/// with others below listen, all but rank 0 join the one above; both begin the heartbeat. Each rank
/// relays what it hears to its other connections. One that loses the rank above turns to rank 0, so
/// that it still hears the last verdict. A connection that does not know the run's token, or breaks
/// the protocol, is closed.
class Link final : public RankLink, public RecordExchange {
 public:
  Link(net::IoExecutor& executor, LinkOptions options);
  ~Link() override;

  /// Most ranks below one in a job of `size` ranks.
  [[nodiscard]] static int fanOut(int size);

  /// From now on takes the ranks below. Again only after a failure.
  Status listen(const std::string& address, const std::string& token);

  /// Where it listens; 0 before.
  [[nodiscard]] std::uint16_t port() const { return server_ ? server_->port() : std::uint16_t{0}; }

  /// All but rank 0: connects to the rank above for push `epoch`. `done` is called once, by the
  /// deadline, unless the link is destroyed before. One join at a time.
  void join(const LinkAddress& above,
            const LinkAddress& rankZero,
            const std::string& token,
            std::uint64_t epoch,
            Deadline deadline,
            std::function<void(const Status&)> done);
  /// Ranks that are not connected: on rank 0 all that are known neither directly nor through
  /// others; elsewhere the rank above, when there is no way to rank 0.
  [[nodiscard]] std::vector<int> missing() const;

  [[nodiscard]] std::vector<RankPosition> positions() const override;

  void setListener(RankLinkListener* listener) override { listener_ = listener; }

  void setPosition(const VoteKey& position) override;
  void stop(const VoteKey& key, const Status& reason) override;
  void halt(const VoteKey& key, const Status& reason) override;
  void publishVerdict(std::uint64_t epoch, const Verdict& verdict) override;

  void setRecordListener(RecordListener* listener) override { records_ = listener; }

  void setProgress(const RankProgress& progress) override;
  void askRecords(std::uint64_t epoch) override;
  void sendRecord(std::uint64_t epoch, std::string_view record) override;
  void endRecords(std::uint64_t epoch) override;
  [[nodiscard]] bool reaches(int rank) const override;

 private:
  using Id = LinkPeers::Id;
  using Peer = LinkPeers::Peer;

  [[nodiscard]] bool isRoot() const { return options_.rank == 0; }

  // Connections (link.cc).
  Id add(std::unique_ptr<net::Stream> stream, bool above);
  /// Connects to `rank`, the one above or rank 0 in its place.
  void connect(int rank, const LinkAddress& address, Deadline deadline);
  void onConnected(Result<std::unique_ptr<net::Stream>> stream);
  void finishJoin(const Status& status);
  /// Closes a connection; a greeted rank behind it is lost.
  void lose(Id id, const Status& reason);
  void loseStranger(bool above, const std::string& address, const Status& reason);

  // Heartbeat (link.cc).
  void beginTicking();
  void tick();
  void armTick();
  /// Tells the listener when this process stood still since the last tick was due.
  void noticeOversleep();
  void dropSilent();

  // Messages (link_messages.cc).
  void receive(Id id, std::span<const std::byte> bytes);
  /// Whether the frame was allowed from that connection, which may be gone afterwards.
  bool handle(Id id, const LinkFrame& frame);
  bool handleHello(Id id, const LinkFrame& frame);
  bool handleWelcome(Id id, const LinkFrame& frame);
  bool handleBeat(Id id, const LinkFrame& frame);
  bool handleStop(Id id, const LinkFrame& frame);
  bool handleHalt(Id id, const LinkFrame& frame);
  bool handleLost(Id id, const LinkFrame& frame);
  bool handleVerdict(Id id, const LinkFrame& frame);

  // Flight records (link_records.cc).
  bool handleRecordWord(Id id, const LinkFrame& frame);
  bool handleRecordPart(Id id, const LinkFrame& frame);
  void tellBelow(LinkKind kind, std::uint64_t epoch);

  /// Whether beats of that connection may tell of `rank`.
  [[nodiscard]] bool speaksFor(const Peer& peer, int rank) const;
  [[nodiscard]] RankPosition ownPosition() const;
  void sendHello(Peer& peer);
  /// Tells the rank above of ranks here that it may not know.
  void announce(const std::vector<int>& ranks);
  void beatAbove(const std::vector<RankPosition>& positions);
  [[nodiscard]] LinkFrame wordBelow() const;
  void beatBelow();
  /// A rank at a later push than ours, while ours still meets, has given ours up: no rank's push
  /// ends well before all have met. The listener then hears a stop from that rank, once.
  void noticeAhead();
  void tellLost(int rank, const Status& reason, std::optional<Id> except);

  net::IoExecutor& executor_;
  LinkOptions options_;
  int fanOut_;
  int parent_;  ///< by the tree; -1 on rank 0
  Duration interval_;
  std::string token_;
  RankLinkListener* listener_ = nullptr;
  RecordListener* records_ = nullptr;
  VoteKey position_;
  TimePoint positionSince_;
  RankProgress progress_;
  TimePoint progressSince_;
  LinkPeers peers_;
  std::optional<LinkFrame> lastStop_;     ///< for ranks that connect late
  std::optional<LinkFrame> lastVerdict_;  ///< the same
  LinkAddress rankZero_;
  std::uint64_t epoch_ = 0;    ///< of the last join
  std::uint64_t behind_ = 0;   ///< the push that the listener knows to be given up by others
  std::uint64_t attempt_ = 0;  ///< number of the connect whose answer counts
  int wanted_ = -1;            ///< the rank that connect() is after
  int orphanOf_ = -1;          ///< the rank above that we lost and told of in this push
  std::function<void(const Status&)> joinDone_;
  Executor::TimerId joinTimer_ = 0;
  Executor::TimerId tickTimer_ = 0;
  TimePoint due_;
  std::unique_ptr<net::Listener> server_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  ///< for callbacks that may come too late
};

}  // namespace pushrod::ranks
