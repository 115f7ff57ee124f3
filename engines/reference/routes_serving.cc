// SPDX-License-Identifier: Apache-2.0
// Routes about generation: pause, caches, sleep, and a generation route of the simplest kind.
#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "engines/reference/body.h"
#include "engines/reference/service.h"

namespace pushrod::engines::reference::serving {

namespace json = boost::json;

namespace {

/// What a server adds after its drain.
constexpr Duration kPauseSettles = std::chrono::milliseconds(20);

/// Answers every parked request as an abort does; returns how many there were.
std::size_t abortParked(Service& service) {
  const auto parked = std::exchange(service.serving.parked, {});
  for (const ExchangePtr& exchange : parked) {
    exchange->json(json::object{
        {"object", "text_completion"},
        {"choices",
         json::array{json::object{{"index", 0}, {"text", ""}, {"finish_reason", "abort"}}}}});
  }
  return parked.size();
}

void release(Service& service) {
  service.serving.paused = false;
  service.serving.keeps = false;
  for (const ExchangePtr& exchange : std::exchange(service.serving.parked, {})) {
    service.cores.front()->utility([&service, exchange] { service.generate(exchange); });
  }
}

/// "abort", "wait" or "keep"; nullopt: answered 400.
std::optional<std::string> readMode(Exchange& exchange) {
  const std::string mode = exchange.query("mode").value_or("abort");
  if (mode == "abort" || mode == "wait" || mode == "keep") {
    return mode;
  }
  exchange.invalid("literal_error", "query.mode", "Input should be 'abort', 'wait' or 'keep'");
  return std::nullopt;
}

void beginPause(Service& service, const std::string& mode) {
  service.serving.paused = true;
  service.serving.keeps = mode == "keep";
  if (mode == "abort") {
    abortParked(service);
  }
}

}  // namespace

void pause(Service& service, const ExchangePtr& exchange) {
  const auto mode = readMode(*exchange);
  if (!mode || !readQueryFlag(*exchange, "clear_cache", true)) {
    return;
  }
  service.utility([](Core&) {},
                  [&service, exchange, mode = *mode] {
                    beginPause(service, mode);
                    service.after(kPauseSettles, [exchange] {
                      exchange->json(json::object{{"status", "paused"}});
                    });
                  });
}

void resume(Service& service, const ExchangePtr& exchange) {
  service.utility([](Core&) {},
                  [&service, exchange] {
                    constexpr std::size_t kMostResumes = 1000;
                    if (service.resumes.size() < kMostResumes) {
                      service.resumes.push_back({service.version(), service.torn()});
                    }
                    release(service);
                    exchange->json(json::object{{"status", "resumed"}});
                  });
}

void isPaused(Service& service, const ExchangePtr& exchange) {
  service.utility([](Core&) {},
                  [&service, exchange] {
                    exchange->json(json::object{{"is_paused", service.serving.paused}});
                  });
}

void abortRequests(Service& service, const ExchangePtr& exchange) {
  const auto body = readLooseBody(*exchange);
  if (!body) {
    return;
  }
  if (!body->is_object()) {
    if (service.profile.typedBodies) {
      exchange->badRequest("Request body must be a JSON object");
    } else {
      exchange->failed(noMapping(*body));
    }
    return;
  }
  const json::value* ids = body->get_object().if_contains("request_ids");
  const std::size_t named = ids != nullptr && ids->is_array() ? ids->get_array().size() : 0;
  service.utility([](Core&) {},
                  [&service, exchange, named] {
                    // Ids named count whether they exist or not.
                    const std::size_t count = named > 0 ? named : abortParked(service);
                    exchange->json(json::object{{"status", "aborted"}, {"aborted", count}});
                  });
}

void resetPrefix(Service& service, const ExchangePtr& exchange) {
  if (!readQueryFlag(*exchange, "reset_running_requests", false) ||
      !readQueryFlag(*exchange, "reset_external", false)) {
    return;
  }
  service.utility([](Core&) {},
                  [&service, exchange] {
                    if (service.profile.prefixResetAnswers) {
                      exchange->json(json::object{{"success", true}});
                    } else {
                      exchange->empty();
                    }
                  });
}

void resetOther(Service& service, const ExchangePtr& exchange) {
  service.utility([](Core&) {}, [exchange] { exchange->empty(); });
}

void sleep(Service& service, const ExchangePtr& exchange) {
  const std::string text = exchange->query("level").value_or("1");
  int level = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), level);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    exchange->invalid("int_parsing", "query.level", "Input should be a valid integer");
    return;
  }
  const auto mode = readMode(*exchange);
  if (!mode) {
    return;
  }
  service.utility([](Core&) {},
                  [&service, exchange, level, mode = *mode] {
                    beginPause(service, mode);
                    service.serving.sleepLevel = level;
                    service.serving.weightsAsleep = level >= 1;
                    service.serving.cacheAsleep = level >= 1;
                    if (service.profile.sleepAnswers) {
                      exchange->json(json::object{{"status", "sleeping"}, {"level", level}});
                    } else {
                      exchange->empty();
                    }
                  });
}

void wakeUp(Service& service, const ExchangePtr& exchange) {
  const std::vector<std::string> tags = exchange->queryAll("tags");
  const auto has = [tags](std::string_view tag) {
    return tags.empty() || std::find(tags.begin(), tags.end(), tag) != tags.end();
  };
  service.utility([](Core&) {},
                  [&service, exchange, tags, has] {
                    Serving& state = service.serving;
                    state.weightsAsleep = state.weightsAsleep && !has("weights");
                    state.cacheAsleep = state.cacheAsleep && !has("kv_cache");
                    const bool asleep = state.weightsAsleep || state.cacheAsleep;
                    if (!asleep) {
                      state.sleepLevel = 0;
                    }
                    // Up to 0.23 a part of the tags resumes the scheduling at once.
                    if (has("scheduling") || service.profile.minor <= 23) {
                      release(service);
                    }
                    if (!service.profile.sleepAnswers) {
                      exchange->empty();
                      return;
                    }
                    json::value shown = nullptr;
                    if (!tags.empty()) {
                      shown = json::array(tags.begin(), tags.end());
                    }
                    exchange->json(json::object{{"status", asleep ? "sleeping" : "awake"},
                                                {"tags", std::move(shown)}});
                  });
}

void isSleeping(Service& service, const ExchangePtr& exchange) {
  service.utility([](Core&) {},
                  [&service, exchange] {
                    const Serving& state = service.serving;
                    exchange->json(json::object{
                        {"is_sleeping", state.paused || state.weightsAsleep || state.cacheAsleep}});
                  });
}

void releaseKvCache(Service& service, const ExchangePtr& exchange) {
  service.utility(
      [](Core&) {},
      [&service, exchange] {
        if (!service.serving.paused || !service.serving.parked.empty()) {
          exchange->failed("release_kv_cache_memory needs a completed pause and no request left");
        } else if (service.profile.sleepAnswers) {
          exchange->json(json::object{{"status", "kv_cache_released"}});
        } else {
          exchange->empty();
        }
      });
}

void complete(Service& service, const ExchangePtr& exchange) {
  const auto body = readLooseBody(*exchange);
  if (!body) {
    return;
  }
  service.cores.front()->utility([&service, exchange] { service.generate(exchange); });
}

}  // namespace pushrod::engines::reference::serving
