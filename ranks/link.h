// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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

namespace pushrod::ranks {

struct LinkOptions {
  int rank = 0;
  int size = 1;
  Duration agreement{60000};  ///< longest silence of a rank that lives
  LogSink* log = nullptr;     ///< may be null; else outlives the link
};

/// The rank link: a star of TCP connections to rank 0. Everything, construction and destruction
/// included, happens on the control thread. Rank 0 listens, the others join; both begin the
/// heartbeat. A connection that does not know the run's token, or breaks the protocol, is closed.
class Link final : public RankLink {
 public:
  Link(net::IoExecutor& executor, LinkOptions options);
  ~Link() override;

  /// Rank 0: from now on takes the others. Again only after a failure.
  Status listen(const std::string& address, const std::string& token);

  /// Rank 0: where it listens; 0 before.
  [[nodiscard]] std::uint16_t port() const { return server_ ? server_->port() : std::uint16_t{0}; }

  /// The others: connects to rank 0 for push `epoch`. `done` is called once, by the deadline,
  /// unless the link is destroyed before. One join at a time.
  void join(const std::string& address,
            std::uint16_t port,
            const std::string& token,
            std::uint64_t epoch,
            Deadline deadline,
            std::function<void(const Status&)> done);
  /// Ranks that are not connected: all but us on rank 0, rank 0 on the others.
  [[nodiscard]] std::vector<int> missing() const;

  struct RankPosition {
    int rank = 0;
    VoteKey key;
    Duration age{};  ///< since it was heard
  };

  /// What the connected ranks said last; on ranks other than 0 only rank 0's.
  [[nodiscard]] std::vector<RankPosition> positions() const;

  void setListener(RankLinkListener* listener) override { listener_ = listener; }

  void setPosition(const VoteKey& position) override { position_ = position; }

  void stop(const VoteKey& key, const Status& reason) override;
  void publishVerdict(std::uint64_t epoch, const Verdict& verdict) override;

 private:
  struct Connection {
    std::unique_ptr<net::Stream> stream;
    std::string input;
    int rank = -1;  ///< -1: has not said yet
    TimePoint heard;
    VoteKey position;
  };

  [[nodiscard]] bool isRoot() const { return options_.rank == 0; }

  std::uint64_t add(std::unique_ptr<net::Stream> stream, int rank);
  void onConnected(Result<std::unique_ptr<net::Stream>> stream,
                   const std::string& token,
                   std::uint64_t epoch);
  void receive(std::uint64_t id, std::span<const std::byte> bytes);
  /// Whether the frame was allowed from that connection, which may be gone afterwards.
  bool handle(std::uint64_t id, const LinkFrame& frame);
  bool handleHello(std::uint64_t id, const LinkFrame& frame);
  bool handleAsRoot(const Connection& from, const LinkFrame& frame);
  bool handleAsLeaf(const LinkFrame& frame);
  /// Closes a connection; a rank behind it is lost.
  void lose(std::uint64_t id, const Status& reason);
  void finishJoin(const Status& status);
  void sendToAll(const LinkFrame& frame, int except);
  void beginTicking();
  void tick();
  /// Tells the listener when this process stood still since the last tick was due.
  void noticeOversleep();
  void dropSilent();
  void armTick();

  net::IoExecutor& executor_;
  LinkOptions options_;
  Duration interval_;
  std::string token_;
  RankLinkListener* listener_ = nullptr;
  VoteKey position_;
  std::map<std::uint64_t, Connection> connections_;
  std::uint64_t nextConnection_ = 0;
  std::optional<LinkFrame> lastStop_;     ///< rank 0: for ranks that connect late
  std::optional<LinkFrame> lastVerdict_;  ///< the same
  std::function<void(const Status&)> joinDone_;
  Executor::TimerId joinTimer_ = 0;
  Executor::TimerId tickTimer_ = 0;
  TimePoint due_;
  std::unique_ptr<net::Listener> server_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  ///< for callbacks that may come too late
};

}  // namespace pushrod::ranks
