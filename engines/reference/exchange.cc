// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/exchange.h"

#include <algorithm>
#include <cctype>

#include <boost/json/serialize.hpp>

namespace pushrod::engines::reference {

namespace json = boost::json;

namespace {

std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Status";
  }
}

/// An answer as uvicorn writes it: nothing says that the connection is about to close.
std::string render(const http::ServerResponse& response) {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " " +
                     std::string(reason(response.status)) + "\r\n";
  text += "content-length: " + std::to_string(response.body.size()) + "\r\n";
  if (!response.contentType.empty()) {
    text += "content-type: " + response.contentType + "\r\n";
  }
  return text + "\r\n" + response.body;
}

json::object errorBody(const std::string& message,
                       std::string_view type,
                       const json::value& param,
                       int code) {
  return {{"error",
           json::object{{"message", message}, {"type", type}, {"param", param}, {"code", code}}}};
}

int hexDigit(char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto at = kDigits.find(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

std::string decode(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hexDigit(text[i + 1]) >= 0 &&
        hexDigit(text[i + 2]) >= 0) {
      plain += static_cast<char>(hexDigit(text[i + 1]) * 16 + hexDigit(text[i + 2]));
      i += 2;
    } else {
      plain += text[i] == '+' ? ' ' : text[i];
    }
  }
  return plain;
}

/// As Python shows a text.
std::string shownText(const std::string& text) {
  const char quote = text.find('\'') == std::string::npos ? '\'' : '"';
  return quote + text + quote;
}

std::string shownLocation(const std::string& location, bool dotted) {
  if (dotted) {
    return "'" + location + "'";
  }
  const std::size_t dot = location.find('.');
  return "('" + location.substr(0, dot) + "', '" + location.substr(dot + 1) + "')";
}

}  // namespace

bool Exchange::hasJsonType() const {
  std::string type = request_.contentType.substr(0, request_.contentType.find(';'));
  type.erase(std::remove(type.begin(), type.end(), ' '), type.end());
  std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  const std::string_view suffix = "+json";
  return type == "application/json" ||
         (type.rfind("application/", 0) == 0 && type.size() > suffix.size() &&
          type.compare(type.size() - suffix.size(), suffix.size(), suffix) == 0);
}

std::optional<std::string> Exchange::query(std::string_view key) const {
  std::vector<std::string> all = queryAll(key);
  if (all.empty()) {
    return std::nullopt;
  }
  return std::move(all.front());
}

std::vector<std::string> Exchange::queryAll(std::string_view key) const {
  std::vector<std::string> all;
  std::string_view rest = request_.query;
  while (!rest.empty()) {
    const std::size_t end = rest.find('&');
    const std::string_view pair = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    const std::size_t equals = pair.find('=');
    if (decode(pair.substr(0, equals)) == key) {
      all.push_back(equals == std::string_view::npos ? "" : decode(pair.substr(equals + 1)));
    }
  }
  return all;
}

void Exchange::note(int status, std::size_t bytes, std::string_view how) {
  journal_.write("reply",
                 {{"connection", request_.connection},
                  {"method", request_.method},
                  {"path", request_.path},
                  {"status", status},
                  {"bytes", bytes},
                  {"how", how}});
}

void Exchange::write(const http::ServerResponse& response, bool closeSilently) {
  if (fault && fault->action == Action::kApplyReset) {
    note(response.status, 0, "reset");
    responder_->cut(http::Responder::Cut::kReset);
    return;
  }
  if (fault && fault->action == Action::kTrickle) {
    note(response.status, response.body.size(), "trickle");
    responder_->sendRaw(render(response), fault->perSecond);
    return;
  }
  note(response.status, response.body.size(), "sent");
  if (closeSilently) {
    responder_->sendRaw(render(response));
  } else {
    responder_->send(response);
  }
}

void Exchange::answer(const http::ServerResponse& response) {
  write(response, response.status >= 500);
}

void Exchange::json(const json::value& body) {
  write({200, "application/json", json::serialize(body), false}, false);
}

void Exchange::empty() {
  write({200, "", "", false}, false);
}

void Exchange::text(std::string body, std::string contentType) {
  write({200, std::move(contentType), std::move(body), false}, false);
}

void Exchange::badRequest(const std::string& message) {
  write({400,
         "application/json",
         json::serialize(errorBody(message, "Bad Request", nullptr, 400)),
         false},
        false);
}

void Exchange::invalid(const std::vector<Invalid>& all) {
  std::string message =
      std::to_string(all.size()) + " validation error" + (all.size() == 1 ? ":" : "s:");
  for (const Invalid& one : all) {
    message += "\n  {'type': '" + std::string(one.type) +
               "', 'loc': " + shownLocation(one.location, profile_.dottedLocations) +
               ", 'msg': " + shownText(one.text) + ", 'input': " + shownText(one.input) +
               (one.context.empty() ? "" : ", 'ctx': {" + one.context + "}") + "}";
  }
  if (profile_.minor <= 22) {
    message += " File \"/app/vllm/entrypoints/openai/api_server.py\", line 1";
  }
  json::value param = nullptr;
  if (profile_.paramInErrors) {
    param = all.front().location;
  }
  write({400,
         "application/json",
         json::serialize(errorBody(message, "Bad Request", param, 400)),
         false},
        false);
}

void Exchange::failed(const std::string& message) {
  write({500,
         "application/json",
         json::serialize(errorBody(message, "InternalServerError", nullptr, 500)),
         false},
        true);
}

void Exchange::failedFlat(const std::string& message) {
  write({500, "application/json", json::serialize(json::object{{"error", message}}), false}, false);
}

void Exchange::notFound(int status, std::string_view detail) {
  write({status, "application/json", json::serialize(json::object{{"detail", detail}}), false},
        false);
}

void Exchange::raw(const std::string& bytes) {
  note(0, bytes.size(), "raw");
  responder_->sendRaw(bytes);
}

void Exchange::cut(http::Responder::Cut how) {
  note(0, 0, how == http::Responder::Cut::kReset ? "reset" : "close");
  responder_->cut(how);
}

}  // namespace pushrod::engines::reference
