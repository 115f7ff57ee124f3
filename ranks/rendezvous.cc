// SPDX-License-Identifier: Apache-2.0
#include "ranks/rendezvous.h"

#include <algorithm>
#include <exception>
#include <future>
#include <utility>

#include <gloo/transport/device.h>
#include <gloo/transport/tcp/device.h>

#include "net/resolver.h"
#include "ranks/control_call.h"
#include "ranks/file_store.h"
#include "ranks/local_address.h"
#include "ranks/redis_store.h"
#include "ranks/run_id.h"
#include "ranks/tcp_store.h"
#include "ranks/tcp_store_server.h"

namespace pushrod::ranks {

namespace {

constexpr Duration kGoodbye{1000};

Deadline within(Duration limit) {
  return Deadline::after(SteadyClock(), limit);
}

}  // namespace

Result<std::unique_ptr<Rendezvous>> Rendezvous::create(net::IoExecutor& executor,
                                                       RendezvousOptions options) {
  StoreAddress address;
  if (options.rank.size > 1) {
    auto parsed =
        parseStoreAddress(options.config.store, options.privateDirectory, processEnvironment());
    if (!parsed) {
      return parsed.status();
    }
    address = std::move(*parsed);
    if (!options.config.interface.empty()) {
      const auto bind = addressOfInterface(options.config.interface);
      if (!bind) {
        return bind.status();
      }
    }
  }
  return std::make_unique<Rendezvous>(executor, std::move(options), std::move(address));
}

Rendezvous::Rendezvous(net::IoExecutor& executor, RendezvousOptions options, StoreAddress address)
    : executor_(executor),
      options_(std::move(options)),
      address_(std::move(address)),
      agreement_("pushrod/" + options_.job, options_.rank, options_.hostId) {}

Rendezvous::~Rendezvous() {
  if (met() && store_ != nullptr && options_.rank.rank == 0) {
    // Best effort: the next run's rank 0 removes what is left.
    const Deadline deadline = within(kGoodbye);
    if (store_->erase({"pushrod/" + options_.job + "/run"}, deadline).ok()) {
      (void)store_->eraseBelow("pushrod/" + options_.job + "/" + run_, deadline);
    }
  }
  if (server_ != nullptr) {
    destroyOnControlThread(executor_, server_);
  }
}

std::string Rendezvous::key(const std::string& name) const {
  return "pushrod/" + options_.job + "/" + run_ + "/" + name;
}

std::string Rendezvous::describe() const {
  std::string text = "rank " + std::to_string(options_.rank.rank) + " of " +
                     std::to_string(options_.rank.size) + " (from " + options_.rank.source + ")";
  if (options_.rank.size > 1) {
    text += ", store " + address_.toString() + (server_ != nullptr ? " served here" : "") +
            (bind_.empty() ? "" : ", address " + bind_);
  }
  return text;
}

Status Rendezvous::meet(Interrupt& interrupt, Deadline deadline) {
  if (met()) {
    return Status();
  }
  if (store_ == nullptr) {
    const Status opened = openStore(interrupt, deadline);
    if (!opened) {
      store_.reset();
      return opened;
    }
  }
  if (device_ == nullptr) {
    const Status opened = openDevice(deadline);
    if (!opened) {
      return opened;
    }
  }
  auto run = agreement_.agree(*store_, interrupt, deadline);
  if (!run) {
    return run.status();
  }
  run_ = std::move(*run);
  return Status();
}

Result<std::vector<std::string>> Rendezvous::lookUp(const std::string& host, Deadline deadline) {
  using Answer = Result<std::vector<std::string>>;
  auto promise = std::make_shared<std::promise<Answer>>();
  auto future = promise->get_future();
  net::resolve(executor_, host, deadline, [promise](Answer answer) {
    promise->set_value(std::move(answer));
  });
  const auto limit = deadline.remaining(executor_) + kGoodbye;
  if (future.wait_until(std::chrono::steady_clock::now() + limit) != std::future_status::ready) {
    return Status(Code::kDeadlineExceeded, "looking up host name '" + host + "' took too long");
  }
  return future.get();
}

Status Rendezvous::openStore(Interrupt& interrupt, Deadline deadline) {
  if (address_.kind == StoreKind::kFile) {
    auto opened = FileStore::open(address_.path);
    if (!opened) {
      return opened.status();
    }
    store_ = std::move(*opened);
    return Status();
  }
  const auto addresses = lookUp(address_.host, deadline);
  if (!addresses) {
    return addresses.status().prefixed("ranks.store " + address_.toString());
  }
  storeAddresses_ = *addresses;
  if (address_.kind == StoreKind::kTcp) {
    return openTcp(*addresses, interrupt, deadline);
  }
  auto redis = std::make_unique<RedisStore>(*addresses, address_.port, address_.toString());
  const Status connected = redis->connect(deadline);
  store_ = std::move(redis);
  return connected;
}

Status Rendezvous::serve(const std::string& address, Deadline deadline) {
  using Opened = Result<std::unique_ptr<TcpStoreServer>>;
  auto opened = onControlThread(
      executor_, deadline, [&executor = executor_, address, port = address_.port]() -> Opened {
        return TcpStoreServer::open(executor, address, port);
      });
  if (!opened) {
    return Status(Code::kDeadlineExceeded, "the control thread did not answer in time");
  }
  if (!*opened) {
    return opened->status();
  }
  server_ = std::move(**opened);
  return Status();
}

Status Rendezvous::openTcp(const std::vector<std::string>& addresses,
                           Interrupt& interrupt,
                           Deadline deadline) {
  // The launcher's first rank of a host is the lowest there. Without a launcher every rank thinks
  // it is that one: the first to bind serves, the others find the port taken.
  const auto own = std::find_if(addresses.begin(), addresses.end(), isLocalAddress);
  if (own != addresses.end() && options_.rank.localRank == 0 && server_ == nullptr) {
    serveError_ = serve(*own, deadline);
  }
  auto client = std::make_unique<TcpStore>(addresses, address_.port, address_.toString());
  PollPause pause;
  while (true) {
    constexpr Duration kOneTry{3000};
    const Status connected = client->connect(within(kOneTry).earliest(deadline));
    if (connected) {
      store_ = std::move(client);
      return connected;
    }
    const Status waited = pause.wait(interrupt, deadline);
    if (waited.code() == Code::kDeadlineExceeded) {
      return nobodyServes(addresses, connected);
    }
    if (!waited) {
      return waited;
    }
  }
}

Status Rendezvous::nobodyServes(const std::vector<std::string>& addresses,
                                const Status& last) const {
  const bool own = std::any_of(addresses.begin(), addresses.end(), isLocalAddress);
  std::string here = hostName();
  const auto local = localAddresses();
  for (const LocalAddress& each : local) {
    here += " " + each.address;
  }
  std::string where = address_.toString();
  if (addresses.front() != address_.host) {
    where += " (" + addresses.front() + ")";
  }
  const std::string from = address_.fromMaster ? " made from MASTER_ADDR and MASTER_PORT" : "";
  std::string advice = "set MASTER_ADDR or ranks.store to an address of a host of this job";
  std::string rankZero =
      options_.rank.rank == 0
          ? "rank 0 runs on " + here
          : "rank 0 is not there, rank " + std::to_string(options_.rank.rank) + " runs on " + here;
  return Status(Code::kUnavailable,
                "no rank serves the store " + where + from + ": " +
                    (own ? "this host owns the address, but " : "this host does not own it, ") +
                    rankZero +
                    (serveError_.ok() ? "" : "; serving it here failed: " + serveError_.message()) +
                    "; last try: " + last.message() + "; " + advice);
}

Result<std::string> Rendezvous::chooseAddress(Deadline deadline) {
  if (!options_.config.interface.empty()) {
    return addressOfInterface(options_.config.interface);
  }
  if (address_.kind != StoreKind::kFile) {
    return routeTo(storeAddresses_.front());
  }
  if (address_.isPrivate) {
    return std::string("127.0.0.1");
  }
  const auto addresses = lookUp(hostName(), deadline);
  if (!addresses) {
    return addresses.status().prefixed("finding this host's address, or set ranks.interface");
  }
  for (const std::string& each : *addresses) {
    if (isLocalAddress(each)) {
      return each;
    }
  }
  return Status(Code::kUnavailable,
                "host name " + hostName() + " leads to " + addresses->front() +
                    ", which is not this host's; set ranks.interface");
}

Status Rendezvous::openDevice(Deadline deadline) {
  const auto chosen = chooseAddress(deadline);
  if (!chosen) {
    return chosen.status();
  }
  try {
    // Numeric always: Gloo does not survive a name that has no address.
    gloo::transport::tcp::attr attributes(chosen->c_str());
    attributes.ai_family = chosen->find(':') == std::string::npos ? AF_INET : AF_INET6;
    device_ = gloo::transport::tcp::CreateDevice(attributes);
  } catch (const std::exception& error) {
    return Status(
        Code::kUnavailable,
        "Gloo cannot use address " + *chosen + ": " + error.what() + "; set ranks.interface");
  }
  bind_ = *chosen;
  return Status();
}

}  // namespace pushrod::ranks
