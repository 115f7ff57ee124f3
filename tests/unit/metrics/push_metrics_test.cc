// SPDX-License-Identifier: Apache-2.0
#include "metrics/push_metrics.h"

#include <chrono>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pushrod/version.h>

#include "tests/unit/metrics/page.h"

namespace pushrod::metrics::test {
namespace {

const std::vector<std::string> kEngines = {"rollout-0", "rollout-1"};

const char* const kPhases[] = {"check",
                               "connect",
                               "prepare",
                               "pause",
                               "clean",
                               "channel",
                               "start",
                               "stream",
                               "agree",
                               "finish",
                               "flush",
                               "verify",
                               "confirm",
                               "resume",
                               "verdict",
                               "recover",
                               "failing"};
const char* const kCodes[] = {"invalid_argument",
                              "failed_precondition",
                              "unavailable",
                              "deadline_exceeded",
                              "cancelled",
                              "aborted",
                              "data_mismatch",
                              "internal"};

TEST(PushMetrics, HasTheFamiliesOfTheContractAndNoOthers) {
  const PushMetrics metrics(TransportKind::kNccl, kEngines);
  const Page page(metrics.render());
  EXPECT_THAT(page.faults, testing::IsEmpty());
  const std::map<std::string, std::string> contract = {
      {"pushrod_pushes_total", "counter"},
      {"pushrod_push_duration_seconds", "histogram"},
      {"pushrod_phase_duration_seconds", "histogram"},
      {"pushrod_generation_paused_seconds_total", "counter"},
      {"pushrod_requests_total", "counter"},
      {"pushrod_engine_failures_total", "counter"},
      {"pushrod_request_duration_seconds", "histogram"},
      {"pushrod_timeouts_total", "counter"},
      {"pushrod_failures_total", "counter"},
      {"pushrod_resends_total", "counter"},
      {"pushrod_channel_rebuilds_total", "counter"},
      {"pushrod_channel_aborts_total", "counter"},
      {"pushrod_stale_sessions_closed_total", "counter"},
      {"pushrod_version_mismatches_total", "counter"},
      {"pushrod_dtype_casts_total", "counter"},
      {"pushrod_bytes_sent_total", "counter"},
      {"pushrod_agreement_duration_seconds", "histogram"},
      {"pushrod_agreement_failures_total", "counter"},
      {"pushrod_engine_up", "gauge"},
      {"pushrod_engine_paused", "gauge"},
      {"pushrod_engine_quarantined", "gauge"},
      {"pushrod_engine_current", "gauge"},
      {"pushrod_engine_reply_lag", "gauge"},
      {"pushrod_empty_sessions_total", "counter"},
      {"pushrod_push_in_progress", "gauge"},
      {"pushrod_push_phase", "gauge"},
      {"pushrod_last_push_timestamp_seconds", "gauge"},
      {"pushrod_last_success_timestamp_seconds", "gauge"},
      {"pushrod_buffer_bytes", "gauge"},
      {"pushrod_build_info", "gauge"},
  };
  EXPECT_EQ(page.types, contract);
  EXPECT_EQ(page.helps.size(), contract.size());
}

TEST(PushMetrics, HasEverySeriesAtZeroBeforeTheFirstPush) {
  const PushMetrics metrics(TransportKind::kTcp, kEngines);
  const Page page(metrics.render());
  for (const Sample& sample : page.samples) {
    EXPECT_EQ(sample.value, sample.name == "pushrod_build_info" ? 1 : 0) << sample.name;
  }
  const Labels tcp{{"transport", "tcp"}};
  for (const char* outcome : {"done", "recovered", "failed", "refused"}) {
    EXPECT_EQ(page.value("pushrod_pushes_total", {{"transport", "tcp"}, {"outcome", outcome}}), 0);
  }
  for (const char* phase : kPhases) {
    EXPECT_EQ(page.value("pushrod_push_phase", {{"phase", phase}}), 0) << phase;
    const Labels labels{{"transport", "tcp"}, {"phase", phase}};
    EXPECT_EQ(page.value("pushrod_timeouts_total", labels), 0) << phase;
    EXPECT_EQ(page.value("pushrod_phase_duration_seconds_count", labels), 0) << phase;
    for (const char* code : kCodes) {
      EXPECT_EQ(page.value("pushrod_failures_total",
                           {{"transport", "tcp"}, {"phase", phase}, {"code", code}}),
                0);
    }
  }
  EXPECT_EQ(page.named("pushrod_push_phase").size(), std::size(kPhases));
  EXPECT_EQ(page.named("pushrod_failures_total").size(), std::size(kPhases) * std::size(kCodes));
  EXPECT_EQ(page.named("pushrod_agreement_failures_total").size(), std::size(kCodes));
  for (const char* name : {"pushrod_resends_total",
                           "pushrod_channel_rebuilds_total",
                           "pushrod_channel_aborts_total",
                           "pushrod_bytes_sent_total",
                           "pushrod_push_duration_seconds_count"}) {
    EXPECT_EQ(page.value(name, tcp), 0) << name;
  }
  for (const char* name : {"pushrod_generation_paused_seconds_total",
                           "pushrod_dtype_casts_total",
                           "pushrod_push_in_progress",
                           "pushrod_last_push_timestamp_seconds",
                           "pushrod_last_success_timestamp_seconds",
                           "pushrod_agreement_duration_seconds_count"}) {
    EXPECT_EQ(page.value(name), 0) << name;
  }
  for (const char* state : {"allocated", "in_flight"}) {
    EXPECT_EQ(page.value("pushrod_buffer_bytes", {{"state", state}}), 0);
  }
}

TEST(PushMetrics, HasEveryRouteAndResultForEveryEngine) {
  const PushMetrics metrics(TransportKind::kShm, kEngines);
  const Page page(metrics.render());
  for (const char* route : {"init_weight_transfer_engine",
                            "shutdown_weight_transfer_engine",
                            "start_weight_update",
                            "start_draft_weight_update",
                            "update_weights",
                            "finish_weight_update",
                            "update_weight_version",
                            "weight_info",
                            "weight_checker",
                            "get_world_size",
                            "pause",
                            "resume",
                            "is_paused",
                            "reset_prefix_cache",
                            "wake_up",
                            "is_sleeping",
                            "health",
                            "version",
                            "server_info",
                            "collective_rpc"}) {
    for (const char* result : {"ok", "rejected", "error", "timeout", "unreachable"}) {
      EXPECT_EQ(page.value("pushrod_requests_total",
                           {{"transport", "shm"}, {"route", route}, {"result", result}}),
                0)
          << route;
    }
    EXPECT_EQ(page.value("pushrod_request_duration_seconds_count", {{"route", route}}), 0);
    for (const std::string& engine : kEngines) {
      EXPECT_EQ(page.value("pushrod_engine_failures_total", {{"engine", engine}, {"route", route}}),
                0);
    }
  }
}

TEST(PushMetrics, CountsAPush) {
  PushMetrics metrics(TransportKind::kTcp, kEngines);
  metrics.pushStarted();
  metrics.phaseEntered(Phase::kStream);
  Page page(metrics.render());
  EXPECT_EQ(page.value("pushrod_push_in_progress"), 1);
  EXPECT_EQ(page.value("pushrod_push_phase", {{"phase", "stream"}}), 1);
  metrics.phaseLeft(Phase::kStream, 2.0);
  metrics.phaseEntered(Phase::kAgree);
  page = Page(metrics.render());
  EXPECT_EQ(page.value("pushrod_push_phase", {{"phase", "stream"}}), 0);
  EXPECT_EQ(page.value("pushrod_push_phase", {{"phase", "agree"}}), 1);
  metrics.pausedSeconds(1.5);
  const auto now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  metrics.pushEnded(PushOutcome::kRecovered, 3.0);
  page = Page(metrics.render());
  EXPECT_EQ(page.value("pushrod_push_in_progress"), 0);
  EXPECT_EQ(page.value("pushrod_push_phase", {{"phase", "agree"}}), 0);
  EXPECT_EQ(page.value("pushrod_pushes_total", {{"transport", "tcp"}, {"outcome", "recovered"}}),
            1);
  EXPECT_EQ(page.value("pushrod_push_duration_seconds_sum", {{"transport", "tcp"}}), 3);
  EXPECT_EQ(page.value("pushrod_push_duration_seconds_bucket", {{"transport", "tcp"}, {"le", "5"}}),
            1);
  EXPECT_EQ(
      page.value("pushrod_push_duration_seconds_bucket", {{"transport", "tcp"}, {"le", "2.5"}}), 0);
  EXPECT_EQ(
      page.value("pushrod_phase_duration_seconds_sum", {{"transport", "tcp"}, {"phase", "stream"}}),
      2);
  EXPECT_EQ(page.value("pushrod_generation_paused_seconds_total"), 1.5);
  EXPECT_NEAR(page.value("pushrod_last_success_timestamp_seconds"), now, 60);
  const double success = page.value("pushrod_last_success_timestamp_seconds");
  metrics.pushEnded(PushOutcome::kFailed, 3.0);
  page = Page(metrics.render());
  EXPECT_EQ(page.value("pushrod_last_success_timestamp_seconds"), success);
  EXPECT_GE(page.value("pushrod_last_push_timestamp_seconds"), success);
}

TEST(PushMetrics, CountsRequestsByRouteAndResult) {
  PushMetrics metrics(TransportKind::kTcp, kEngines);
  metrics.request("rollout-0", "pause", RequestResult::kOk, 0.02);
  metrics.request("rollout-0", "update_weights", RequestResult::kError, 0.5);
  metrics.request("rollout-1", "no_such_route", RequestResult::kTimeout, 0.5);
  metrics.request("not configured", "pause", RequestResult::kUnreachable, 0.5);
  const Page page(metrics.render());
  const auto requests = [&](const char* route, const char* result) {
    return page.value("pushrod_requests_total",
                      {{"transport", "tcp"}, {"route", route}, {"result", result}});
  };
  EXPECT_EQ(requests("pause", "ok"), 1);
  EXPECT_EQ(requests("update_weights", "error"), 1);
  EXPECT_EQ(requests("other", "timeout"), 1);
  EXPECT_EQ(requests("pause", "unreachable"), 1);
  const auto failures = [&](const char* engine, const char* route) {
    return page.value("pushrod_engine_failures_total", {{"engine", engine}, {"route", route}});
  };
  EXPECT_EQ(failures("rollout-0", "pause"), 0);
  EXPECT_EQ(failures("rollout-0", "update_weights"), 1);
  EXPECT_EQ(failures("rollout-1", "other"), 1);
  // No label may come from a caller's text.
  for (const Sample& sample : page.samples) {
    for (const auto& [name, value] : sample.labels) {
      EXPECT_NE(value, "no_such_route");
      EXPECT_NE(value, "not configured");
    }
  }
}

TEST(PushMetrics, CountsFailuresAndTheRest) {
  PushMetrics metrics(TransportKind::kIpc, kEngines);
  metrics.timeout(Phase::kStream);
  metrics.failure(Phase::kVerify, Code::kDataMismatch);
  metrics.failure(Phase::kIdle, Code::kInternal);  // no label for it
  metrics.failure(Phase::kVerify, Code::kOk);
  metrics.resend();
  metrics.channelRebuilt();
  metrics.channelAborted();
  metrics.staleSessionClosed("rollout-0");
  metrics.versionMismatch("rollout-1");
  metrics.emptySession("rollout-1");
  metrics.casts(3);
  metrics.bytesSent(std::uint64_t{1} << 40);
  metrics.agreement(0.0003);
  metrics.agreementFailed(Code::kDeadlineExceeded);
  metrics.buffers(100, 40);
  metrics.engine("rollout-1", {.up = true, .paused = true, .current = true, .replyLag = 2});
  const Page page(metrics.render());
  const Labels ipc{{"transport", "ipc"}};
  EXPECT_EQ(page.value("pushrod_timeouts_total", {{"transport", "ipc"}, {"phase", "stream"}}), 1);
  EXPECT_EQ(page.value("pushrod_failures_total",
                       {{"transport", "ipc"}, {"phase", "verify"}, {"code", "data_mismatch"}}),
            1);
  double all = 0;
  for (const Sample& sample : page.named("pushrod_failures_total")) {
    all += sample.value;
  }
  EXPECT_EQ(all, 1);
  EXPECT_EQ(page.value("pushrod_resends_total", ipc), 1);
  EXPECT_EQ(page.value("pushrod_channel_rebuilds_total", ipc), 1);
  EXPECT_EQ(page.value("pushrod_channel_aborts_total", ipc), 1);
  EXPECT_EQ(page.value("pushrod_stale_sessions_closed_total", {{"engine", "rollout-0"}}), 1);
  EXPECT_EQ(page.value("pushrod_version_mismatches_total", {{"engine", "rollout-1"}}), 1);
  EXPECT_EQ(page.value("pushrod_empty_sessions_total", {{"engine", "rollout-1"}}), 1);
  EXPECT_EQ(page.value("pushrod_dtype_casts_total"), 3);
  EXPECT_EQ(page.value("pushrod_bytes_sent_total", ipc), 1099511627776.0);
  EXPECT_EQ(page.value("pushrod_agreement_duration_seconds_bucket", {{"le", "0.00025"}}), 0);
  EXPECT_EQ(page.value("pushrod_agreement_duration_seconds_bucket", {{"le", "0.0005"}}), 1);
  EXPECT_EQ(page.value("pushrod_agreement_failures_total", {{"code", "deadline_exceeded"}}), 1);
  EXPECT_EQ(page.value("pushrod_buffer_bytes", {{"state", "allocated"}}), 100);
  EXPECT_EQ(page.value("pushrod_buffer_bytes", {{"state", "in_flight"}}), 40);
  EXPECT_EQ(page.value("pushrod_engine_up", {{"engine", "rollout-1"}}), 1);
  EXPECT_EQ(page.value("pushrod_engine_paused", {{"engine", "rollout-1"}}), 1);
  EXPECT_EQ(page.value("pushrod_engine_quarantined", {{"engine", "rollout-1"}}), 0);
  EXPECT_EQ(page.value("pushrod_engine_current", {{"engine", "rollout-1"}}), 1);
  EXPECT_EQ(page.value("pushrod_engine_reply_lag", {{"engine", "rollout-1"}}), 2);
  EXPECT_EQ(page.value("pushrod_engine_up", {{"engine", "rollout-0"}}), 0);
}

TEST(PushMetrics, DropsTheSeriesOfAnEngineThatLeft) {
  PushMetrics metrics(TransportKind::kTcp, kEngines);
  metrics.request("rollout-1", "pause", RequestResult::kError, 0.1);
  metrics.engine("rollout-1", {.up = true});
  metrics.emptySession("rollout-0");
  metrics.setEngines({"rollout-0", "rollout-2"});
  metrics.engine("rollout-1", {.up = true});  // a late word of it is nothing
  const Page page(metrics.render());
  std::set<std::string> names;
  for (const Sample& sample : page.samples) {
    if (const auto found = sample.labels.find("engine"); found != sample.labels.end()) {
      names.insert(found->second);
    }
  }
  EXPECT_EQ(names, (std::set<std::string>{"rollout-0", "rollout-2"}));
  EXPECT_EQ(page.value("pushrod_empty_sessions_total", {{"engine", "rollout-0"}}), 1);
  EXPECT_EQ(page.value("pushrod_engine_up", {{"engine", "rollout-2"}}), 0);
  // One that comes back begins anew; what is counted over all engines does not fall.
  metrics.setEngines({"rollout-1"});
  const Page back(metrics.render());
  EXPECT_EQ(
      back.value("pushrod_engine_failures_total", {{"engine", "rollout-1"}, {"route", "pause"}}),
      0);
  EXPECT_EQ(back.value("pushrod_requests_total",
                       {{"transport", "tcp"}, {"route", "pause"}, {"result", "error"}}),
            1);
}

TEST(PushMetrics, EscapesNamesAndTellsTheBuild) {
  const std::string odd = "a\"b\\c\nd {e=\"f\"}";
  PushMetrics metrics(TransportKind::kMixed, {odd});
  metrics.engine(odd, {.up = true});
  const Page page(metrics.render());
  EXPECT_THAT(page.faults, testing::IsEmpty());
  EXPECT_EQ(page.value("pushrod_engine_up", {{"engine", odd}}), 1);
  const auto info = page.named("pushrod_build_info");
  ASSERT_EQ(info.size(), 1U);
  EXPECT_EQ(info[0].labels.at("version"), PUSHROD_VERSION);
  EXPECT_THAT(info[0].labels.at("gloo"), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_EQ(info[0].labels.at("nccl"), "none");
  EXPECT_EQ(info[0].labels.at("cuda"), "none");
  EXPECT_EQ(page.value("pushrod_pushes_total", {{"transport", "mixed"}, {"outcome", "done"}}), 0);
}

TEST(PushMetrics, MayBeUsedFromSeveralThreads) {
  PushMetrics metrics(TransportKind::kTcp, kEngines);
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 3; ++worker) {
    threads.emplace_back([&metrics, worker] {
      for (int i = 0; i < 100; ++i) {
        metrics.request("rollout-1", "pause", RequestResult::kError, 0.1);
        metrics.engine("rollout-1", {.up = true});
        if (worker == 0 && i % 10 == 0) {
          metrics.setEngines(i % 20 == 0 ? std::vector<std::string>{"rollout-0"} : kEngines);
        }
        if (worker == 1 && i % 10 == 0) {
          EXPECT_THAT(Page(metrics.render()).faults, testing::IsEmpty());
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const Page page(metrics.render());
  EXPECT_EQ(page.value("pushrod_requests_total",
                       {{"transport", "tcp"}, {"route", "pause"}, {"result", "error"}}),
            300);
}

}  // namespace
}  // namespace pushrod::metrics::test
