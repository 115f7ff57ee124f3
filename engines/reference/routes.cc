// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/routes.h"

#include <algorithm>
#include <array>

namespace pushrod::engines::reference {

namespace {

constexpr std::array<Route, 29> kRoutes = {{
    {"init_weight_transfer_engine", "POST", 22, true, &transfer::init},
    {"shutdown_weight_transfer_engine", "POST", 32, true, &transfer::shutdown},
    {"start_weight_update", "POST", 22, true, &transfer::start},
    {"start_draft_weight_update", "POST", 26, true, &transfer::startDraft},
    {"update_weights", "POST", 22, true, &transfer::update},
    {"finish_weight_update", "POST", 22, true, &transfer::finish},
    {"update_weight_version", "POST", 27, false, &transfer::setVersion},
    {"weight_info", "GET", 27, false, &transfer::weightInfo},
    {"weight_checker", "POST", 32, true, &transfer::checker},
    {"pause", "POST", 22, false, &serving::pause},
    {"resume", "POST", 22, false, &serving::resume},
    {"is_paused", "GET", 22, false, &serving::isPaused},
    {"abort_requests", "POST", 26, false, &serving::abortRequests},
    {"reset_prefix_cache", "POST", 22, false, &serving::resetPrefix},
    {"reset_mm_cache", "POST", 22, false, &serving::resetOther},
    {"reset_encoder_cache", "POST", 22, false, &serving::resetOther},
    {"sleep", "POST", 22, false, &serving::sleep},
    {"wake_up", "POST", 22, false, &serving::wakeUp},
    {"is_sleeping", "GET", 22, false, &serving::isSleeping},
    {"release_kv_cache_memory", "POST", 31, false, &serving::releaseKvCache},
    {"v1/completions", "POST", 22, false, &serving::complete},
    {"health", "GET", 22, false, &info::health},
    {"version", "GET", 22, false, &info::version},
    {"v1/models", "GET", 22, false, &info::models},
    {"get_world_size", "GET", 22, false, &info::worldSize},
    {"server_info", "GET", 22, false, &info::serverInfo},
    {"metrics", "GET", 22, false, &info::metrics},
    {"collective_rpc", "POST", 22, true, &info::collectiveRpc},
    {"__state", "GET", 22, false, &info::state},
}};

constexpr Route kControl = {"__ctl", "POST", 22, false, &info::control};

}  // namespace

const Route* findRoute(std::string_view name) {
  if (name == kControl.name) {
    return &kControl;
  }
  const auto* found = std::find_if(
      kRoutes.begin(), kRoutes.end(), [&](const Route& route) { return route.name == name; });
  return found == kRoutes.end() ? nullptr : found;
}

bool isRoute(std::string_view name) {
  // The engine's own two routes cannot be made to fail: they are how faults are taken back.
  return findRoute(name) != nullptr && name.rfind("__", 0) != 0;
}

bool isCollectiveRoute(std::string_view name) {
  const Route* route = findRoute(name);
  return route != nullptr && route->collective;
}

}  // namespace pushrod::engines::reference
