// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "engines/reference/exchange.h"

namespace pushrod::engines::reference {

class Service;

/// One row of the route table.
struct Route {
  std::string_view name;  ///< the path without its leading slash
  std::string_view method;
  int since;        ///< first profile that has it
  bool collective;  ///< asks the workers
  void (*handler)(Service& service, const ExchangePtr& exchange);
};

/// Null when no profile has it.
[[nodiscard]] const Route* findRoute(std::string_view name);
[[nodiscard]] bool isRoute(std::string_view name);
[[nodiscard]] bool isCollectiveRoute(std::string_view name);

/// Handlers, by what they are about.
namespace transfer {
void init(Service& service, const ExchangePtr& exchange);
void shutdown(Service& service, const ExchangePtr& exchange);
void start(Service& service, const ExchangePtr& exchange);
void startDraft(Service& service, const ExchangePtr& exchange);
void update(Service& service, const ExchangePtr& exchange);
void finish(Service& service, const ExchangePtr& exchange);
void setVersion(Service& service, const ExchangePtr& exchange);
void weightInfo(Service& service, const ExchangePtr& exchange);
void checker(Service& service, const ExchangePtr& exchange);
}  // namespace transfer

namespace serving {
void pause(Service& service, const ExchangePtr& exchange);
void resume(Service& service, const ExchangePtr& exchange);
void isPaused(Service& service, const ExchangePtr& exchange);
void abortRequests(Service& service, const ExchangePtr& exchange);
void resetPrefix(Service& service, const ExchangePtr& exchange);
void resetOther(Service& service, const ExchangePtr& exchange);
void sleep(Service& service, const ExchangePtr& exchange);
void wakeUp(Service& service, const ExchangePtr& exchange);
void isSleeping(Service& service, const ExchangePtr& exchange);
void releaseKvCache(Service& service, const ExchangePtr& exchange);
void complete(Service& service, const ExchangePtr& exchange);
}  // namespace serving

namespace info {
void health(Service& service, const ExchangePtr& exchange);
void version(Service& service, const ExchangePtr& exchange);
void models(Service& service, const ExchangePtr& exchange);
void worldSize(Service& service, const ExchangePtr& exchange);
void serverInfo(Service& service, const ExchangePtr& exchange);
void metrics(Service& service, const ExchangePtr& exchange);
void collectiveRpc(Service& service, const ExchangePtr& exchange);
void state(Service& service, const ExchangePtr& exchange);
void control(Service& service, const ExchangePtr& exchange);
}  // namespace info

}  // namespace pushrod::engines::reference
