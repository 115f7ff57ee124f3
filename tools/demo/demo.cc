// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/demo.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "tools/blocking_http.h"
#include "tools/console.h"
#include "tools/demo/story.h"
#include "tools/exit_code.h"
#include "tools/make_checkpoint.h"
#include "tools/report_file.h"

namespace pushrod::tools {
namespace {

constexpr int kRanks = 4;
constexpr int kEngines = 3;
constexpr int kWorkers = 2;
constexpr int kFaulty = 1;

std::string engineName(int index) {
  return "rollout-" + std::to_string(index);
}

/// A buffer that cuts the checkpoint into about eight chunks, as a configuration value.
std::string bufferText(std::uint64_t bytes) {
  constexpr std::uint64_t kKibi = 1024;
  return std::to_string(std::clamp<std::uint64_t>(bytes / 8 / kKibi, 64, kKibi * kKibi)) + "KiB";
}

}  // namespace

int Demo::run() {
  // A made-up checkpoint has about eight chunks, somebody's own at least one.
  const std::string chunks = options_.checkpoint.empty() ? "3" : "1";
  const auto fault = [&chunks](const std::string& action) {
    return R"([{"route": "update_weights", "nth": 1, "do": ")" + action + R"(", "after_chunks": )" +
           chunks + "}]";
  };
  const std::vector<Chapter> chapters = {
      {"A push that goes well", "1", "done", -1, ""},
      {"A worker of " + engineName(kFaulty) + " fails half-way through version 2, once",
       "2",
       "recovered",
       kFaulty,
       fault("fail_after_chunks")},
      {engineName(kFaulty) + " dies in the middle of version 3",
       "3",
       "failed",
       kFaulty,
       fault("die_after_chunks")}};
  print("Pushrod demo: " + std::to_string(kRanks) + " trainer ranks push weights to " +
        std::to_string(kEngines) + " engines with " + std::to_string(kWorkers) +
        " workers each.\nEverything runs on this machine, without GPU or network.\n\n");
  Status status = prepare();
  if (!status && watch_.received() == 0) {
    showTrouble(status);
    return kExitRefused;
  }
  for (std::size_t i = 0; status && i < chapters.size(); ++i) {
    print("\n" + std::to_string(i + 1) + "  " + chapters[i].title + "\n");
    status = play(chapters[i]);
  }
  const int stopped = watch_.received();
  if (!status && stopped == 0) {
    showTrouble(status);
    return kExitFailed;
  }
  if (stopped != 0) {
    return exitOfSignal(stopped);
  }
  print(
      "\nWhere to look next\n"
      "   pushrod push --help      push your own checkpoint to your own engines\n"
      "   pushrod demo --checkpoint DIR   this story with your checkpoint\n"
      "   pushrod config check F   a configuration's faults, all at once\n"
      "   pushrod status URL       a running job; its metrics are at URL/metrics\n"
      "   pushrod engine --help    the reference engine that played the rollouts here\n");
  return kExitDone;
}

Status Demo::prepare() {
  Result<std::unique_ptr<PrivateFolder>> folder = PrivateFolder::create();
  if (!folder) {
    return folder.status();
  }
  folder_ = std::move(*folder);
  for (Status (Demo::*step)() : {&Demo::makeCheckpoints, &Demo::startEngines, &Demo::startRanks}) {
    Status status = (this->*step)();
    if (!status) {
      return status;
    }
  }
  return {};
}

std::string Demo::folderOf(const std::string& version) const {
  return options_.checkpoint.empty() ? folder_->file("checkpoint-" + version) : options_.checkpoint;
}

Status Demo::makeCheckpoints() {
  for (const std::string version : {"1", "2", "3"}) {
    if (!options_.checkpoint.empty()) {
      break;
    }
    MadeModel model;
    model.version = version;
    Status made = makeCheckpoint(folderOf(version), model);
    if (!made) {
      return made;
    }
  }
  const Result<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::open(folderOf("1"));
  if (!checkpoint) {
    return checkpoint.status();
  }
  const Manifest& manifest = (*checkpoint)->manifest();
  bytes_ = manifest.bytes();
  print("   checkpoint " + std::to_string(manifest.tensors.size()) + " tensors, " +
        bytesText(manifest.bytes()) + " in " + std::to_string((*checkpoint)->files()) + " files" +
        (options_.checkpoint.empty() ? ", made up after Qwen3, new values in every version\n"
                                     : " from " + options_.checkpoint + "\n"));
  return {};
}

Status Demo::startEngines() {
  for (int i = 0; i < kEngines; ++i) {
    Result<std::unique_ptr<DemoEngine>> engine =
        DemoEngine::start(executor_,
                          {.name = engineName(i),
                           .workers = kWorkers,
                           .logFile = folder_->file(engineName(i) + ".log")});
    if (!engine) {
      return engine.status();
    }
    engines_.push_back(std::move(*engine));
    print("   " + engines_.back()->name() + "  " + engines_.back()->url() + "\n");
  }
  return {};
}

Status Demo::startRanks() {
  std::string list;
  for (const auto& engine : engines_) {
    list += "    - {url: \"" + engine->url() + "\", name: " + engine->name() + "}\n";
  }
  PushOptions options;
  options.config = folder_->file("push.yaml");
  options.ranks = kRanks;
  options.orders = true;
  options.flight = folder_->path();
  // Limits for one quiet machine; the defaults are made for clusters.
  Status written = writeReportFile(options.config,
                                   "job: demo\nengines:\n  list:\n" + list +
                                       "transport: {kind: tcp, buffer: " + bufferText(bytes_) +
                                       "}\n"
                                       "timeouts: {connect: 5s, startup: 10s}\n"
                                       "metrics: {listen: \"127.0.0.1:0\"}\n");
  if (!written) {
    return written;
  }
  Result<std::unique_ptr<DemoRanks>> ranks =
      DemoRanks::start(options, folder_->path(), watch_.descriptor());
  if (!ranks) {
    return ranks.status();
  }
  ranks_ = std::move(*ranks);
  print("   metrics    " + ranks_->metrics() + "/metrics\n");
  return {};
}

Result<MetricPage> Demo::scrape() {
  const Result<http::Response> page =
      fetch(executor_, ranks_->metrics(), "/metrics", std::chrono::seconds(5));
  if (!page) {
    return page.status();
  }
  return parseMetricPage(page->body);
}

Status Demo::play(const Chapter& chapter) {
  if (chapter.faultyEngine >= 0) {
    Status planned = engines_[static_cast<std::size_t>(chapter.faultyEngine)]->plan(chapter.faults);
    if (!planned) {
      return planned;
    }
  }
  const Result<MetricPage> before = scrape();
  if (!before) {
    return before.status();
  }
  const Result<std::vector<RankVerdict>> verdicts =
      ranks_->push(chapter.version, folderOf(chapter.version));
  if (!verdicts) {
    return verdicts.status();
  }
  const RankVerdict& first = verdicts->front();
  print(phaseLines(first) + "   outcome    " + first.outcome +
        (first.outcome == "recovered" ? " by one resend, in " : " in ") +
        fixedText(first.durationSeconds, 2) + " s, generation paused for " +
        fixedText(first.pausedSeconds, 2) + " s\n" + rankLines(*verdicts));
  if (!first.cause.empty()) {
    print("   cause\n" +
          wrapped((first.causeEngine.empty() ? "" : first.causeEngine + ": ") + first.cause, 5));
  }
  Status checked = check(chapter, *verdicts);
  const Result<MetricPage> after = scrape();
  if (after) {
    print(metricLines(*before, *after));
  }
  print(remedyLines(first));
  return checked;
}

Status Demo::check(const Chapter& chapter, const std::vector<RankVerdict>& verdicts) {
  const Result<std::unique_ptr<Checkpoint>> checkpoint =
      Checkpoint::open(folderOf(chapter.version));
  if (!checkpoint) {
    return checkpoint.status();
  }
  const Result<TensorDigests> tensors = digestCheckpoint(**checkpoint);
  const Result<std::string> digest = tensors ? shortDigest(*tensors) : tensors.status();
  if (!digest) {
    return digest.status();
  }
  print("   checkpoint version " + chapter.version + "                   content " + *digest +
        "\n");
  const bool good = chapter.outcome != "failed";
  std::string wrong;
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    const Result<EngineState> state = engines_[i]->state();
    print(engineLine(engines_[i]->name(), state, *digest));
    const bool dead = !good && static_cast<int>(i) == chapter.faultyEngine;
    const bool asTold = dead ? !state.ok()
                             : state.ok() && (good ? state->weights == *tensors && !state->paused &&
                                                         state->version == chapter.version
                                                   : state->paused);
    wrong += asTold ? "" : " " + engines_[i]->name() + " is not in the state it should be in;";
  }
  for (std::size_t rank = 0; rank < verdicts.size(); ++rank) {
    if (verdicts[rank].outcome != chapter.outcome) {
      wrong += " rank " + std::to_string(rank) + " says " + verdicts[rank].outcome + " (" +
               verdicts[rank].summary + ");";
    }
  }
  return wrong.empty() ? Status() : Status(Code::kInternal, "not as it should be:" + wrong);
}

void Demo::showTrouble(const Status& trouble) const {
  printError("the demo did not go as it should: " + trouble.message());
}

}  // namespace pushrod::tools
