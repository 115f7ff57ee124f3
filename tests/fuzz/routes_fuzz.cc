// SPDX-License-Identifier: Apache-2.0
// Any bytes as bodies and queries of requests to the reference engine, its control route included:
// each request gets one well-formed answer or none at all, and what it does to the engine can be
// looked at afterwards.
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/parse.hpp>

#include "common/check.h"
#include "engines/reference/service.h"

namespace {

using namespace pushrod;
using namespace pushrod::engines::reference;

constexpr std::array kRoutes = {"init_weight_transfer_engine",
                                "shutdown_weight_transfer_engine",
                                "start_weight_update",
                                "start_draft_weight_update",
                                "update_weights",
                                "finish_weight_update",
                                "update_weight_version",
                                "weight_checker",
                                "pause",
                                "resume",
                                "abort_requests",
                                "reset_prefix_cache",
                                "reset_mm_cache",
                                "sleep",
                                "wake_up",
                                "release_kv_cache_memory",
                                "v1/completions",
                                "collective_rpc",
                                "__ctl"};
constexpr std::array kReleases = {"0.22", "0.27", "0.30", "0.33"};
constexpr std::size_t kMostRequests = 4;

/// The control thread, played by the one that fuzzes. Timers are due at once.
class Loop final : public Executor {
 public:
  [[nodiscard]] TimePoint now() const override { return std::chrono::steady_clock::now(); }

  void post(Task task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    come_.notify_one();
  }

  TimerId postAt(TimePoint /*when*/, Task task) override {
    post(std::move(task));
    return 0;
  }

  void cancel(TimerId /*id*/) override {}

  /// Runs tasks until `settled`, or until none has come for a while.
  template <typename Settled>
  void run(const Settled& settled) {
    constexpr auto kQuiet = std::chrono::milliseconds(20);
    std::unique_lock lock(mutex_);
    while (!settled() && come_.wait_for(lock, kQuiet, [this] { return !tasks_.empty(); })) {
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable come_;
  std::deque<Task> tasks_;
};

struct Answer {
  int given = 0;
  http::ServerResponse response;
};

class Listener final : public http::Responder {
 public:
  explicit Listener(std::shared_ptr<Answer> answer) : answer_(std::move(answer)) {}

  void send(http::ServerResponse response) override {
    PUSHROD_CHECK(response.status >= 100 && response.status <= 999);
    answer_->response = std::move(response);
    ++answer_->given;
  }

  void sendRaw(std::string /*bytes*/, int /*perSecond*/) override { ++answer_->given; }

  void cut(Cut /*how*/) override { ++answer_->given; }

 private:
  std::shared_ptr<Answer> answer_;
};

/// One engine with one worker. Over shared memory, so that no body makes it connect anywhere.
class Engine {
 public:
  explicit Engine(const std::string& release) {
    shared_.profile = *Profile::find(release);
    shared_.backend = Backend::kShm;
    shared_.hostId = "h";
    shared_.journal = std::make_unique<Journal>();
    shared_.die = [] {};
    worker_ = std::make_unique<Worker>(shared_, WorkerPlace{});
    service_ = std::make_unique<Service>(
        loop_,
        shared_,
        Facts{"fuzz", "model", "h", ""},
        std::vector{std::make_shared<Core>(loop_, std::vector<Worker*>{worker_.get()})},
        FaultTable());
    service_->closePort = [] {};
    service_->connections = [] { return std::size_t{0}; };
  }

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  ~Engine() {
    shared_.stop.raise();
    service_.reset();
    worker_.reset();
  }

  /// `text`: the query up to the first line's end, then the body.
  std::shared_ptr<Answer> ask(std::string_view method,
                              std::string_view route,
                              std::string_view text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    http::ServerRequest request;
    request.method = method;
    request.path = "/" + std::string(route);
    request.query = text.substr(0, end);
    request.body = text.substr(std::min(end + 1, text.size()));
    request.contentType = "application/json";
    auto answer = std::make_shared<Answer>();
    service_->handle(std::move(request), std::make_unique<Listener>(answer));
    loop_.run([&answer] { return answer->given > 0; });
    PUSHROD_CHECK(answer->given <= 1);
    return answer;
  }

 private:
  Loop loop_;
  WorkerShared shared_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<Service> service_;
};

}  // namespace

/// The first byte chooses the release; each request begins with one for its route and ends at a
/// zero byte.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  Engine engine(kReleases[data[0] % kReleases.size()]);
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (std::size_t i = 0; i < kMostRequests && !rest.empty(); ++i) {
    const auto route = static_cast<unsigned char>(rest.front()) % kRoutes.size();
    const std::size_t end = std::min(rest.find('\0', 1), rest.size());
    (void)engine.ask("POST", kRoutes[route], rest.substr(1, end - 1));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  (void)engine.ask("POST", "__ctl", "\n{\"faults\":[]}");
  const auto state = engine.ask("GET", "__state", "");
  PUSHROD_CHECK(state->given == 1 && state->response.status == 200);
  boost::json::error_code error;
  PUSHROD_CHECK(boost::json::parse(state->response.body, error).is_object() && !error);
  return 0;
}
