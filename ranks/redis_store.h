// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "ranks/store.h"

struct redisContext;

namespace pushrod::ranks {

/// A Redis server as the ranks' store, over one connection that is made anew when it is lost.
/// Values expire after a day, so that a crashed job leaves nothing for ever.
class RedisStore final : public Store {
 public:
  /// `addresses` are numeric and tried in turn; nothing is contacted yet.
  RedisStore(std::vector<std::string> addresses, std::uint16_t port, std::string name);
  ~RedisStore() override;

  /// One try.
  Status connect(Deadline deadline);

  Status set(const std::string& key, const std::string& value, Deadline deadline) override;
  Result<std::vector<std::optional<std::string>>> get(const std::vector<std::string>& keys,
                                                      Deadline deadline) override;
  Status erase(const std::vector<std::string>& keys, Deadline deadline) override;

  /// Left to the values' expiry: finding keys by prefix would walk the whole server.
  Status eraseBelow(const std::string& /*prefix*/, Deadline /*deadline*/) override {
    return Status();
  }

  [[nodiscard]] std::string describe() const override { return name_; }

 private:
  struct Free {
    void operator()(redisContext* context) const;
  };

  /// Runs one command; `use` sees its reply.
  template <typename Use>
  Status command(const std::vector<std::string>& parts, Deadline deadline, Use use);
  [[nodiscard]] Status failed(const std::string& why, Code code = Code::kUnavailable) const;

  std::vector<std::string> addresses_;
  std::uint16_t port_;
  std::string name_;
  std::unique_ptr<redisContext, Free> context_;
};

}  // namespace pushrod::ranks
