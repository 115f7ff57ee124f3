// SPDX-License-Identifier: Apache-2.0
#include "http/client.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <map>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "http/exchange.h"
#include "http/tls.h"

namespace pushrod::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// Idle connections per server: a request and the probe beside it.
constexpr std::size_t kMaxKept = 4;

struct Kept {
  std::shared_ptr<detail::Connection> connection;
  TimePoint since;
};

class ClientImpl final : public Client, public detail::ExchangeOwner {
 public:
  ClientImpl(net::IoExecutor& executor, std::shared_ptr<detail::Route> route)
      : context_(executor.context()), route_(std::move(route)), sweep_(executor.context()) {}

  ~ClientImpl() override {
    for (auto& [id, exchange] : exchanges_) {
      exchange->drop();
    }
    for (const Kept& kept : kept_) {
      kept.connection->close();
    }
  }

  Id send(Request request, Deadline deadline, Done done) override {
    const Id id = nextId_++;
    auto exchange = std::make_shared<detail::Exchange>(
        context_, route_, *this, id, std::move(request), std::move(done));
    exchanges_.emplace(id, exchange);
    exchange->start(deadline);
    return id;
  }

  void cancel(Id id, const Status& reason) override {
    if (const auto found = exchanges_.find(id); found != exchanges_.end()) {
      found->second->cancel(reason);
    }
  }

  std::shared_ptr<detail::Connection> takeKept(Repeat repeat) override {
    dropOld();
    // The youngest first: the others may then age and go.
    while (!kept_.empty()) {
      if (repeat == Repeat::kNever && closesEarly_) {
        return nullptr;
      }
      auto connection = std::move(kept_.back().connection);
      kept_.pop_back();
      if (connection->quiet()) {
        return connection;
      }
      connection->close();
      keptWasClosed();
    }
    return nullptr;
  }

  void keep(std::shared_ptr<detail::Connection> connection) override {
    if (kept_.size() >= kMaxKept) {
      kept_.front().connection->close();
      kept_.pop_front();
    }
    kept_.push_back({std::move(connection), SteadyClock().now()});
    armSweep();
  }

  void keptWasClosed() override { closesEarly_ = true; }

  void forget(Id id) override { exchanges_.erase(id); }

 private:
  /// Closes kept connections that are too old, so that none lies half closed between pushes.
  void dropOld() {
    const TimePoint now = SteadyClock().now();
    while (!kept_.empty() && now - kept_.front().since >= route_->options.idleLimit) {
      kept_.front().connection->close();
      kept_.pop_front();
    }
  }

  void armSweep() {
    if (sweeping_ || kept_.empty()) {
      return;
    }
    sweeping_ = true;
    sweep_.expires_at(kept_.front().since + route_->options.idleLimit);
    sweep_.async_wait([this, alive = std::weak_ptr<bool>(alive_)](const error_code&) {
      if (alive.expired()) {
        return;
      }
      sweeping_ = false;
      dropOld();
      armSweep();
    });
  }

  asio::io_context& context_;
  std::shared_ptr<detail::Route> route_;
  std::map<Id, std::shared_ptr<detail::Exchange>> exchanges_;
  std::deque<Kept> kept_;  ///< oldest first
  asio::steady_timer sweep_;
  bool sweeping_ = false;
  /// The server closes connections sooner than our limit and without saying so; what must not be
  /// repeated then gets a fresh one.
  bool closesEarly_ = false;
  Id nextId_ = 1;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

Status invalid(const std::string& text) {
  return Status(Code::kInvalidArgument, text);
}

Status loadProxy(detail::Route& route) {
  const std::string& given = route.options.proxy;
  if (given.empty()) {
    return {};
  }
  Result<Url> proxy =
      Url::parse(given.find("://") == std::string::npos ? "http://" + given : given);
  if (!proxy.ok()) {
    return proxy.status().prefixed("proxy");
  }
  if (proxy->tls || !proxy->prefix.empty()) {
    return invalid("the proxy " + proxy->authority() + " must be given as host:port");
  }
  route.proxy = *proxy;
  return {};
}

}  // namespace

Result<std::unique_ptr<Client>> Client::create(net::IoExecutor& executor,
                                               const Url& url,
                                               ClientOptions options) {
  try {
    const bool clean = std::all_of(options.bearerToken.begin(),
                                   options.bearerToken.end(),
                                   [](char c) { return c >= ' ' && c < 0x7f; });
    if (!clean) {
      return invalid("the bearer token has a character that cannot stand in a header");
    }
    auto route = std::make_shared<detail::Route>();
    route->url = url;
    route->options = std::move(options);
    if (Status status = loadProxy(*route); !status.ok()) {
      return status;
    }
    if (url.tls) {
      const ClientOptions& given = route->options;
      auto tls = makeTlsContext({given.caFile, given.certFile, given.keyFile, given.verifyTls});
      if (!tls.ok()) {
        return tls.status();
      }
      route->tls = std::move(*tls);
    }
    return std::unique_ptr<Client>(std::make_unique<ClientImpl>(executor, std::move(route)));
  } catch (const std::exception& thrown) {
    return Status(Code::kInternal, std::string("no HTTP client could be made: ") + thrown.what());
  }
}

}  // namespace pushrod::http
