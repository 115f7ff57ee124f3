// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/invitation.h"

#include <charconv>
#include <limits>
#include <optional>

#include "transports/tcp/address.h"

namespace pushrod::transports::tcp {

namespace {

constexpr std::string_view kHead = "tcp channel 1";
constexpr int kMostWorkers = 1 << 20;

void add(std::string& text, std::string_view word) {
  text.append(" ").append(std::to_string(word.size())).append(":").append(word);
}

void add(std::string& text, std::size_t number) {
  text.append(" ").append(std::to_string(number));
}

/// Reads what add() wrote; once something is amiss, nothing more.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  std::size_t number(std::size_t most) {
    std::size_t value = 0;
    const char* const end = text_.data() + text_.size();
    if (!take(' ')) {
      return 0;
    }
    const auto [at, error] = std::from_chars(text_.data(), end, value);
    good_ = error == std::errc() && value <= most;
    text_.remove_prefix(static_cast<std::size_t>(at - text_.data()));
    return good_ ? value : 0;
  }

  std::string word() {
    const std::size_t size = number(text_.size());
    if (!take(':') || size > text_.size()) {
      good_ = false;
      return {};
    }
    std::string word(text_.substr(0, size));
    text_.remove_prefix(size);
    return word;
  }

  void head(std::string_view expected) {
    good_ = good_ && text_.starts_with(expected);
    text_.remove_prefix(good_ ? expected.size() : 0);
  }

  [[nodiscard]] bool good() const { return good_; }

  [[nodiscard]] bool finished() const { return good_ && text_.empty(); }

 private:
  bool take(char expected) {
    good_ = good_ && text_.starts_with(expected);
    text_.remove_prefix(good_ ? 1 : 0);
    return good_;
  }

  std::string_view text_;
  bool good_ = true;
};

}  // namespace

std::string Invitation::encode() const {
  std::string text(kHead);
  add(text, owners.size());
  for (const int owner : owners) {
    add(text, static_cast<std::size_t>(owner));
  }
  add(text, ids.size());
  for (const common::Id& id : ids) {
    add(text, common::toHex(id));
  }
  add(text, engines.size());
  for (const PlaneEngine& engine : engines) {
    add(text, engine.name);
    add(text, static_cast<std::size_t>(engine.workers));
    add(text, engine.dpGroup);
    add(text, hostOfUrl(engine.url));
  }
  return text;
}

Result<Invitation> Invitation::decode(std::string_view text) {
  Invitation invitation;
  Words words(text);
  words.head(kHead);
  constexpr auto kMostRank = static_cast<std::size_t>(std::numeric_limits<int>::max());
  for (std::size_t left = words.number(text.size()); left > 0 && words.good(); --left) {
    invitation.owners.push_back(static_cast<int>(words.number(kMostRank)));
  }
  bool hex = true;
  for (std::size_t left = words.number(text.size()); left > 0 && words.good(); --left) {
    const std::optional<common::Id> id = common::idFromHex(words.word());
    hex = hex && id.has_value();
    invitation.ids.push_back(id.value_or(common::Id{}));
  }
  for (std::size_t left = words.number(text.size()); left > 0 && words.good(); --left) {
    PlaneEngine engine;
    engine.name = words.word();
    engine.workers = static_cast<int>(words.number(kMostWorkers));
    engine.dpGroup = words.word();
    const std::string host = words.word();
    const bool v6 = host.find(':') != std::string::npos;
    engine.url = host.empty() ? "" : "http://" + (v6 ? "[" + host + "]" : host);
    invitation.engines.push_back(std::move(engine));
  }
  if (!words.finished() || !hex) {
    return Status(Code::kInternal, "rank 0's invitation to the tcp channel is malformed");
  }
  return invitation;
}

std::string encodeEndpoints(const std::vector<Endpoint>& endpoints) {
  std::string text;
  for (const Endpoint& endpoint : endpoints) {
    add(text, endpoint.address);
    add(text, endpoint.port);
  }
  return text;
}

Result<std::vector<Endpoint>> decodeEndpoints(std::string_view text) {
  std::vector<Endpoint> endpoints;
  Words words(text);
  while (words.good() && !words.finished()) {
    Endpoint endpoint;
    endpoint.address = words.word();
    endpoint.port =
        static_cast<std::uint16_t>(words.number(std::numeric_limits<std::uint16_t>::max()));
    endpoints.push_back(std::move(endpoint));
  }
  if (!words.good()) {
    return Status(Code::kInternal, "a source's answer to the invitation is malformed");
  }
  return endpoints;
}

}  // namespace pushrod::transports::tcp
