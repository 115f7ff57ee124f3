// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ranks/server_store.h"

struct redisContext;

namespace pushrod::ranks {

/// A Redis server as the ranks' store. Values expire after a day, so that a crashed job leaves
/// nothing for ever; finding keys by prefix to erase them would walk the whole server.
class RedisStore final : public ServerStore {
 public:
  RedisStore(std::vector<std::string> addresses, std::uint16_t port, std::string name);
  ~RedisStore() override;

  Status set(const std::string& key, const std::string& value, Deadline deadline) override;
  Result<std::vector<std::optional<std::string>>> get(const std::vector<std::string>& keys,
                                                      Deadline deadline) override;
  Status erase(const std::vector<std::string>& keys, Deadline deadline) override;

 protected:
  [[nodiscard]] bool connected() const override { return context_ != nullptr; }

  Status connectTo(const std::string& address, Deadline deadline) override;

  void disconnect() override { context_.reset(); }

 private:
  struct Free {
    void operator()(redisContext* context) const;
  };

  /// Runs one command; `use` sees its reply.
  template <typename Use>
  Status command(const std::vector<std::string>& parts, Deadline deadline, Use use);

  std::unique_ptr<redisContext, Free> context_;
};

}  // namespace pushrod::ranks
