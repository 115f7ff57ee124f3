// SPDX-License-Identifier: Apache-2.0
// Routes about generation: pause, caches, sleep, and a generation route of the simplest kind.
#include <algorithm>
#include <charconv>
#include <functional>
#include <string>
#include <utility>
#include <vector>

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
  exchange.invalid({{"literal_error",
                     "query.mode",
                     "Input should be 'abort', 'wait' or 'keep'",
                     mode,
                     "'expected': \"'abort', 'wait' or 'keep'\""}});
  return std::nullopt;
}

/// Asks the workers `calls` times for something that changes nothing here, one call after another
/// as the core does; `done` gets the first failure, "" for none. Replies that are late come out.
void askWorkers(Service& service, int calls, const std::function<void(const std::string&)>& done) {
  if (calls == 0) {
    done("");
    return;
  }
  WorkerCall call;
  call.method = Method::kCheckHealth;
  service.collective(call, [&service, calls, done](const FanResult& result) {
    if (result.ok) {
      askWorkers(service, calls - 1, done);
    } else {
      done(result.error);
    }
  });
}

/// How often a pause asks the workers: the device is synchronised, two caches are theirs.
int pauseCalls(const Profile& profile, bool clearCache) {
  return (profile.minor >= 29 ? 1 : 0) + (clearCache ? 2 : 0);
}

/// The level of a sleep; nullopt: answered 400.
std::optional<int> readLevel(Exchange& exchange) {
  const std::string text = exchange.query("level").value_or("1");
  int level = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), level);
  const std::string at = "query.level";
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    exchange.invalid({{"int_parsing",
                       at,
                       "Input should be a valid integer, unable to parse string as an integer",
                       text}});
  } else if (level < 0) {
    exchange.invalid({{"greater_than_equal",
                       at,
                       "Input should be greater than or equal to 0",
                       text,
                       "'ge': 0"}});
  } else if (level > 2) {
    exchange.invalid(
        {{"less_than_equal", at, "Input should be less than or equal to 2", text, "'le': 2"}});
  } else {
    return level;
  }
  return std::nullopt;
}

bool asleep(const Serving& state) {
  return state.weightsAsleep || state.cacheAsleep;
}

/// Wakes what the tags name, everything without any; whether the workers are asked. One tag that
/// names nothing asleep, and nothing is woken.
bool wake(Serving& state, std::vector<std::string> tags) {
  const bool all = tags.empty();
  tags.erase(std::remove(tags.begin(), tags.end(), "scheduling"), tags.end());
  if (!asleep(state) || (tags.empty() && !all)) {
    return false;
  }
  for (const std::string& tag : tags) {
    if (!(tag == "weights" && state.weightsAsleep) && !(tag == "kv_cache" && state.cacheAsleep)) {
      return false;
    }
  }
  const auto named = [&](std::string_view tag) {
    return all || std::find(tags.begin(), tags.end(), tag) != tags.end();
  };
  state.weightsAsleep = state.weightsAsleep && !named("weights");
  state.cacheAsleep = state.cacheAsleep && !named("kv_cache");
  if (!asleep(state)) {
    state.sleepLevel = 0;
  }
  return true;
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
  const auto clear = mode ? readQueryFlag(*exchange, "clear_cache", true) : std::nullopt;
  if (!clear) {
    return;
  }
  const int calls = pauseCalls(service.profile, *clear);
  const auto answer = [&service, exchange](const std::string& error) {
    if (!error.empty()) {
      exchange->failedFlat("Failed to pause generation: Call to pause_scheduler method failed: " +
                           error);
      return;
    }
    service.after(kPauseSettles, [exchange] {
      exchange->json(json::object{{"status", "paused"}});
    });
  };
  service.utility([](Core&) {},
                  [&service, mode = *mode, calls, answer] {
                    beginPause(service, mode);
                    askWorkers(service, calls, answer);
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
  askWorkers(service, 1, [exchange](const std::string& error) {
    const std::string& path = exchange->request().path;
    if (error.empty()) {
      exchange->empty();
    } else {
      exchange->failed("Call to " + path.substr(path.rfind('/') + 1) + " method failed: " + error);
    }
  });
}

void sleep(Service& service, const ExchangePtr& exchange) {
  const auto level = readLevel(*exchange);
  const auto mode = level ? readMode(*exchange) : std::nullopt;
  if (!mode) {
    return;
  }
  const auto answer = [&service, exchange, level = *level](const std::string& error) {
    if (!error.empty()) {
      exchange->failed("Call to sleep method failed: " + error);
      return;
    }
    Serving& state = service.serving;
    if (level >= 1) {
      state.sleepLevel = level;
      state.weightsAsleep = true;
      state.cacheAsleep = true;
    }
    if (service.profile.sleepAnswers) {
      exchange->json(json::object{{"status", "sleeping"}, {"level", level}});
    } else {
      exchange->empty();
    }
  };
  service.utility([](Core&) {},
                  [&service, level = *level, mode = *mode, answer] {
                    beginPause(service, mode);
                    const bool falls = level >= 1 && !asleep(service.serving);
                    askWorkers(
                        service, pauseCalls(service.profile, level >= 1) + (falls ? 1 : 0), answer);
                  });
}

void wakeUp(Service& service, const ExchangePtr& exchange) {
  const std::vector<std::string> tags = exchange->queryAll("tags");
  const auto answer = [&service, exchange, tags](const std::string& error) {
    if (!error.empty()) {
      exchange->failed("Call to wake_up method failed: " + error);
      return;
    }
    // The last part resumes, also when nothing slept; up to 0.23 any part does.
    if (!asleep(service.serving) || service.profile.minor <= 23) {
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
    exchange->json(json::object{{"status", asleep(service.serving) ? "sleeping" : "awake"},
                                {"tags", std::move(shown)}});
  };
  service.utility([](Core&) {},
                  [&service, tags, answer] {
                    const bool wakes = wake(service.serving, tags);
                    askWorkers(service, wakes ? 1 : 0, answer);
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
