// SPDX-License-Identifier: Apache-2.0
#include "ranks/redis_store.h"

#include <algorithm>
#include <cstring>
#include <sys/time.h>
#include <utility>

#include <hiredis.h>

namespace pushrod::ranks {

namespace {

constexpr const char* kExpiry = "86400";

timeval limitOf(Deadline deadline) {
  constexpr std::int64_t kMilli = 1000;
  // hiredis takes a zero limit for none.
  const std::int64_t left = std::max<std::int64_t>(deadline.remaining(SteadyClock()).count(), 1);
  timeval limit{};
  limit.tv_sec = static_cast<decltype(limit.tv_sec)>(left / kMilli);
  limit.tv_usec = static_cast<decltype(limit.tv_usec)>((left % kMilli) * kMilli);
  return limit;
}

/// hiredis' text, which lies in an array inside the context.
std::string errorOf(const redisContext* context) {
  if (context == nullptr) {
    return "no memory";
  }
  return {context->errstr, strnlen(context->errstr, sizeof context->errstr)};
}

}  // namespace

void RedisStore::Free::operator()(redisContext* context) const {
  redisFree(context);
}

RedisStore::RedisStore(std::vector<std::string> addresses, std::uint16_t port, std::string name)
    : ServerStore(std::move(addresses), port, std::move(name)) {}

RedisStore::~RedisStore() = default;

Status RedisStore::connectTo(const std::string& address, Deadline deadline) {
  context_.reset(redisConnectWithTimeout(address.c_str(), port(), limitOf(deadline)));
  return context_ != nullptr && context_->err == 0
             ? Status()
             : failed("cannot be reached: " + errorOf(context_.get()));
}

template <typename Use>
Status RedisStore::command(const std::vector<std::string>& parts, Deadline deadline, Use use) {
  const Status reached = connect(deadline);
  if (!reached) {
    return reached;
  }
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const std::string& part : parts) {
    texts.push_back(part.data());
    sizes.push_back(part.size());
  }
  redisSetTimeout(context_.get(), limitOf(deadline));
  const std::unique_ptr<redisReply, void (*)(redisReply*)> reply(
      static_cast<redisReply*>(redisCommandArgv(
          context_.get(), static_cast<int>(parts.size()), texts.data(), sizes.data())),
      [](redisReply* each) { freeReplyObject(each); });
  if (reply == nullptr) {
    const std::string why = errorOf(context_.get());
    disconnect();
    return deadline.passed(SteadyClock()) ? late("answer") : failed("did not answer: " + why);
  }
  if (reply->type == REDIS_REPLY_ERROR) {
    return failed("refused: " + std::string(reply->str, reply->len));
  }
  return use(*reply);
}

Status RedisStore::set(const std::string& key, const std::string& value, Deadline deadline) {
  return command(
      {"SET", key, value, "EX", kExpiry}, deadline, [](const redisReply&) { return Status(); });
}

Result<std::vector<std::optional<std::string>>> RedisStore::get(
    const std::vector<std::string>& keys, Deadline deadline) {
  if (keys.empty()) {
    return std::vector<std::optional<std::string>>();
  }
  std::vector<std::string> parts = {"MGET"};
  parts.insert(parts.end(), keys.begin(), keys.end());
  std::vector<std::optional<std::string>> values;
  const Status done = command(parts, deadline, [&](const redisReply& reply) {
    if (reply.type != REDIS_REPLY_ARRAY || reply.elements != keys.size()) {
      return failed("answered something else than it was asked");
    }
    for (std::size_t i = 0; i < reply.elements; ++i) {
      const redisReply& each = *reply.element[i];
      values.emplace_back(each.type == REDIS_REPLY_STRING
                              ? std::optional(std::string(each.str, each.len))
                              : std::nullopt);
    }
    return Status();
  });
  if (!done) {
    return done;
  }
  return values;
}

Status RedisStore::erase(const std::vector<std::string>& keys, Deadline deadline) {
  if (keys.empty()) {
    return Status();
  }
  std::vector<std::string> parts = {"DEL"};
  parts.insert(parts.end(), keys.begin(), keys.end());
  return command(parts, deadline, [](const redisReply&) { return Status(); });
}

}  // namespace pushrod::ranks
