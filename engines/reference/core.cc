// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/core.h"

#include <utility>

namespace pushrod::engines::reference {

void Core::collective(WorkerCall call, Done done) {
  jobs_.push_back({std::move(call), std::move(done), {}});
  pump();
}

void Core::utility(std::function<void()> task) {
  jobs_.push_back({std::nullopt, {}, std::move(task)});
  pump();
}

void Core::pump() {
  if (pumping_) {
    return;
  }
  pumping_ = true;
  while (!frozen_ && !busy_ && !jobs_.empty()) {
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    if (job.call) {
      begin(*job.call, std::move(job.done));
    } else {
      job.task();
    }
  }
  pumping_ = false;
}

void Core::begin(const WorkerCall& call, Done done) {
  busy_ = true;
  reading_ = 0;
  result_ = CollectiveResult();
  done_ = std::move(done);
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const bool taken = workers_[i]->submit(
        call, [executor = &executor_, weak = weak_from_this(), i](WorkerReply reply) {
          executor->post([weak, i, reply = std::move(reply)]() mutable {
            if (const auto core = weak.lock()) {
              core->onReply(i, std::move(reply));
            }
          });
        });
    ++lines_[i].owed;
    if (!taken) {
      lines_[i].replies.push_back({false, nullptr, "too many calls are queued at this worker"});
    }
  }
  readReplies();
}

void Core::onReply(std::size_t worker, WorkerReply reply) {
  lines_[worker].replies.push_back(std::move(reply));
  readReplies();
  pump();
}

void Core::readReplies() {
  while (busy_ && !frozen_ && !lines_[reading_].replies.empty()) {
    Line& line = lines_[reading_];
    WorkerReply reply = std::move(line.replies.front());
    line.replies.pop_front();
    --line.owed;
    if (!reply.ok) {
      result_.ok = false;
      result_.values.clear();
      result_.error = "Worker failed with error '" + reply.error +
                      "', please check the stack trace above for the root cause";
      end(std::move(result_));
      return;
    }
    result_.values.push_back(std::move(reply.value));
    ++reading_;
    if (reading_ == lines_.size()) {
      end(std::move(result_));
      return;
    }
  }
}

void Core::end(CollectiveResult result) {
  busy_ = false;
  const Done done = std::exchange(done_, {});
  done(std::move(result));
}

std::vector<int> Core::lag() const {
  std::vector<int> all;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    all.push_back(lines_[i].owed - (busy_ && i >= reading_ ? 1 : 0));
  }
  return all;
}

}  // namespace pushrod::engines::reference
