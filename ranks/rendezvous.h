// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <pushrod/config.h>
#include <pushrod/rank.h>

#include "ranks/interrupt.h"
#include "ranks/run_id.h"
#include "ranks/store.h"
#include "ranks/store_address.h"

namespace gloo::transport {
class Device;
}

namespace pushrod::net {
class IoExecutor;
}

namespace pushrod::ranks {

class TcpStoreServer;

struct RendezvousOptions {
  Rank rank;
  RanksConfig config;
  std::string job;
  std::string privateDirectory;  ///< for `auto`: the folder that local ranks share
  std::string hostId;            ///< told to rank 0
};

/// Brings the ranks of one run of a job together: opens the store (serving it where this host owns
/// its address), chooses our address, makes the one Gloo device and agrees on the run's id, which
/// keeps what dead runs left in a store from being taken for this one's. Used from one thread at a
/// time.
class Rendezvous {
 public:
  /// Checks the store's address and the interface. Contacts nobody.
  static Result<std::unique_ptr<Rendezvous>> create(net::IoExecutor& executor,
                                                    RendezvousOptions options);
  Rendezvous(net::IoExecutor& executor, RendezvousOptions options, StoreAddress address);
  /// Removes what this rank put into the store, within a bound.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// Done once; returns at once when it is. All ranks need to come within the deadline.
  Status meet(Interrupt& interrupt, Deadline deadline);

  [[nodiscard]] bool met() const { return !run_.empty(); }

  [[nodiscard]] const Rank& rank() const { return options_.rank; }

  /// Where the ranks meet and why there, for texts.
  [[nodiscard]] std::string describe() const;

  // The following only after meet().
  [[nodiscard]] Store& store() { return *store_; }

  /// 32 hex digits that only this run's ranks know.
  [[nodiscard]] const std::string& run() const { return run_; }

  /// On rank 0: every rank's host id, by rank.
  [[nodiscard]] const std::vector<std::string>& hostIds() const { return agreement_.hostIds(); }

  /// Our numeric address towards the other ranks.
  [[nodiscard]] const std::string& address() const { return bind_; }

  [[nodiscard]] const std::shared_ptr<gloo::transport::Device>& device() { return device_; }

  /// A key of this run.
  [[nodiscard]] std::string key(const std::string& name) const;

 private:
  Status openStore(Interrupt& interrupt, Deadline deadline);
  Status openTcp(const std::vector<std::string>& addresses,
                 Interrupt& interrupt,
                 Deadline deadline);
  Status serve(const std::string& address, Deadline deadline);
  Status openDevice(Deadline deadline);
  Result<std::string> chooseAddress(Deadline deadline);
  Result<std::vector<std::string>> lookUp(const std::string& host, Deadline deadline);
  [[nodiscard]] Status nobodyServes(const std::vector<std::string>& addresses,
                                    const Status& last) const;

  net::IoExecutor& executor_;
  RendezvousOptions options_;
  StoreAddress address_;
  std::vector<std::string> storeAddresses_;
  Status serveError_;  ///< why this rank does not serve the store although it may
  std::unique_ptr<TcpStoreServer> server_;  ///< lives on the control thread
  std::unique_ptr<Store> store_;
  std::string bind_;
  std::shared_ptr<gloo::transport::Device> device_;
  RunAgreement agreement_;
  std::string run_;
};

}  // namespace pushrod::ranks
