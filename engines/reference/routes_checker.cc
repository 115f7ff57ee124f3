// SPDX-License-Identifier: Apache-2.0
// POST /weight_checker: digests of the loaded parameters.
#include <string>
#include <utility>

#include "engines/reference/body.h"
#include "engines/reference/service.h"

namespace pushrod::engines::reference::transfer {

namespace json = boost::json;

namespace {

std::string checkerError(const std::string& text) {
  return "Call to compute_weight_checksums method failed: " + text;
}

void answerCompare(Exchange& exchange, const json::object& sums, const json::object& baseline) {
  json::array mismatches;
  json::object all = sums;
  for (const auto& entry : baseline) {
    all[entry.key()] = entry.value();
  }
  std::map<std::string, bool> different;
  for (const auto& entry : all) {
    const json::value* ours = sums.if_contains(entry.key());
    const json::value* theirs = baseline.if_contains(entry.key());
    if (ours == nullptr || theirs == nullptr || *ours != *theirs) {
      different[std::string(entry.key().data(), entry.key().size())] = true;
    }
  }
  for (const auto& [key, unused] : different) {
    mismatches.emplace_back(key);
  }
  exchange.json(json::object{{"match", mismatches.empty()}, {"mismatches", mismatches}});
}

void onChecksums(Exchange& exchange,
                 const FanResult& result,
                 const std::optional<json::object>& baseline) {
  if (!result.ok) {
    exchange.failed(checkerError(result.error));
    return;
  }
  json::object sums;
  for (const json::array& core : result.values) {
    for (const json::value& worker : core) {
      if (!worker.is_object()) {
        // The reply of another, earlier call: the API server fails by itself.
        const std::string type = worker.is_null() ? "NoneType" : worker.is_string() ? "str" : "int";
        exchange.failed("'" + type + "' object has no attribute 'keys'");
        return;
      }
      for (const auto& entry : worker.get_object()) {
        sums[entry.key()] = entry.value();
      }
    }
  }
  if (baseline) {
    answerCompare(exchange, sums, *baseline);
  } else {
    exchange.json(json::object{{"checksums", sums}});
  }
}

}  // namespace

void checker(Service& service, const ExchangePtr& exchange) {
  const auto body = readTypedBody(*exchange);
  if (!body) {
    return;
  }
  const json::object request = body->is_object() ? body->get_object() : json::object();
  const auto action = asString(request.if_contains("action"));
  if (!action || (*action != "checksum" && *action != "reset" && *action != "compare")) {
    const std::string choice = "'checksum', 'reset' or 'compare'";
    if (action) {
      exchange->invalid({{"literal_error",
                          "body.action",
                          "Input should be " + choice,
                          *action,
                          "'expected': \"" + choice + "\""}});
    } else {
      exchange->invalid({{"missing", "body.action", "Field required"}});
    }
    return;
  }
  WorkerCall call;
  call.method = *action == "reset" ? Method::kZero : Method::kChecksums;
  if (exchange->fault && exchange->fault->action == Action::kWorkerFails) {
    call.failWorker = exchange->fault->worker;
  }
  std::optional<json::object> baseline;
  if (*action == "compare") {
    const json::value* given = request.if_contains("baseline");
    if (given == nullptr || !given->is_object()) {
      exchange->badRequest("action='compare' requires a 'baseline' object");
      return;
    }
    baseline = given->get_object();
  }
  service.collective(call, [exchange, baseline, reset = *action == "reset"](const FanResult& r) {
    if (reset && r.ok) {
      exchange->json(json::object{{"status", "reset"}});
    } else {
      onChecksums(*exchange, r, baseline);
    }
  });
}

}  // namespace pushrod::engines::reference::transfer
