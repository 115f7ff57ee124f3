// SPDX-License-Identifier: Apache-2.0
#include "net/resolver.h"

#include <memory>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "net/io_executor.h"

namespace pushrod::net {

namespace {

using Done = std::function<void(Result<std::vector<std::string>>)>;

/// One look-up. The first of answer and limit calls `done`; the other finds it gone.
struct Query {
  explicit Query(IoExecutor& executor) : resolver(executor.context()) {}

  void finish(const Result<std::vector<std::string>>& result) {
    if (done) {
      std::exchange(done, nullptr)(result);
    }
  }

  boost::asio::ip::tcp::resolver resolver;
  Done done;
};

Result<std::vector<std::string>> answer(
    const std::string& host,
    const boost::system::error_code& error,
    const boost::asio::ip::tcp::resolver::results_type& results) {
  std::vector<std::string> addresses;
  for (const auto& entry : results) {
    addresses.push_back(entry.endpoint().address().to_string());
  }
  if (error || addresses.empty()) {
    return Status(Code::kUnavailable,
                  "host name '" + host + "' has no address (" + error.message() +
                      "); check the name and the name service");
  }
  return addresses;
}

void start(IoExecutor& executor, const std::string& host, Deadline deadline, Done done) {
  auto query = std::make_shared<Query>(executor);
  query->done = std::move(done);
  const Executor::TimerId timer = executor.postAt(deadline.when(), [query, host] {
    query->resolver.cancel();
    const Status late(Code::kDeadlineExceeded, "looking up host name '" + host + "' took too long");
    query->finish(late);
  });
  query->resolver.async_resolve(
      host,
      "0",
      [query, host, timer, &executor](const boost::system::error_code& error,
                                      const boost::asio::ip::tcp::resolver::results_type& found) {
        executor.cancel(timer);
        query->finish(answer(host, error, found));
      });
}

}  // namespace

void resolve(IoExecutor& executor, const std::string& host, Deadline deadline, Done done) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  std::string name = bracketed ? host.substr(1, host.size() - 2) : host;
  executor.post([&executor, name = std::move(name), deadline, done = std::move(done)]() mutable {
    boost::system::error_code error;
    const auto numeric = boost::asio::ip::make_address(name, error);
    if (!error) {
      done(std::vector<std::string>{numeric.to_string()});
      return;
    }
    start(executor, name, deadline, std::move(done));
  });
}

}  // namespace pushrod::net
