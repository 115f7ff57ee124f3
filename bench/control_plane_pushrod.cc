// SPDX-License-Identifier: Apache-2.0
#include <future>

#include "bench/control_plane_clients.h"
#include "common/check.h"
#include "http/client.h"
#include "net/io_executor.h"

namespace pushrod::bench {
namespace {

constexpr Duration kLimit = std::chrono::minutes(1);

class PushrodClient final : public PushClient {
 public:
  PushrodClient(const std::vector<std::uint16_t>& ports, const std::vector<Step>& steps)
      : steps_(steps) {
    onThread([&] {
      for (const std::uint16_t port : ports) {
        const auto url = http::Url::parse("http://127.0.0.1:" + std::to_string(port));
        auto client = http::Client::create(executor_, *url, {});
        PUSHROD_CHECK(client.ok());
        clients_.push_back(std::move(*client));
      }
    });
  }

  ~PushrodClient() override {
    onThread([&] { clients_.clear(); });
  }

  Cost push(int times) override {
    Cost cost;
    std::promise<void> ended;
    executor_.post([&] {
      cpuBefore_ = threadCpuSeconds();
      start_ = executor_.now();
      left_ = times;
      ended_ = [&] {
        cost.cpuSeconds = threadCpuSeconds() - cpuBefore_;
        cost.wallSeconds = std::chrono::duration<double>(executor_.now() - start_).count();
        ended.set_value();
      };
      send(0);
    });
    ended.get_future().wait();
    return cost;
  }

 private:
  template <typename Work>
  void onThread(Work work) {
    std::promise<void> done;
    executor_.post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  void send(std::size_t index) {
    const Step& step = steps_[index];
    const Deadline deadline = Deadline::after(executor_, kLimit);
    waiting_ = clients_.size();
    for (auto& client : clients_) {
      http::Request request;
      request.method = step.method;
      request.target = step.target;
      request.body = step.body;
      client->send(std::move(request), deadline, [this, index](Result<http::Response> answer) {
        PUSHROD_CHECK(answer.ok() && answer->status == 200);
        if (--waiting_ == 0) {
          next(index + 1);
        }
      });
    }
  }

  void next(std::size_t index) {
    if (index < steps_.size()) {
      send(index);
    } else if (--left_ > 0) {
      send(0);
    } else {
      ended_();
    }
  }

  std::vector<Step> steps_;
  net::IoExecutor executor_;
  std::vector<std::unique_ptr<http::Client>> clients_;
  std::function<void()> ended_;
  std::size_t waiting_ = 0;
  int left_ = 0;
  double cpuBefore_ = 0;
  TimePoint start_;
};

}  // namespace

std::unique_ptr<PushClient> makePushrodClient(const std::vector<std::uint16_t>& ports,
                                              const std::vector<Step>& steps) {
  return std::make_unique<PushrodClient>(ports, steps);
}

}  // namespace pushrod::bench
