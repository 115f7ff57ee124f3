// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/canned_engine.h"

#include <utility>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "tests/contract/engine_pair.h"

namespace pushrod::contract {

namespace {

namespace json = boost::json;

std::string targetOf(const http::ServerRequest& request) {
  return request.query.empty() ? request.path : request.path + "?" + request.query;
}

/// A server closes after a 500 and does not say so beforehand.
std::string silentlyClosing(const Passage& passage) {
  return "HTTP/1.1 500 Internal Server Error\r\nserver: uvicorn\r\ncontent-length: " +
         std::to_string(passage.body.size()) + "\r\ncontent-type: application/json\r\n\r\n" +
         passage.body;
}

}  // namespace

CannedEngine::CannedEngine(std::vector<Passage> passages) : passages_(std::move(passages)) {
  onThread(executor_, [this] {
    auto made = http::Server::listen(
        executor_,
        {},
        [this](const http::ServerRequest& request, std::unique_ptr<http::Responder> responder) {
          serve(request, *responder);
        });
    ASSERT_TRUE(made.ok()) << made.status().message();
    server_ = std::move(*made);
    port_ = server_->port();
  });
}

CannedEngine::~CannedEngine() {
  onThread(executor_, [this] { server_.reset(); });
  const std::lock_guard lock(mutex_);
  for (const std::string& surprise : surprises_) {
    ADD_FAILURE() << surprise;
  }
  if (next_ < passages_.size() && surprises_.empty()) {
    ADD_FAILURE() << "the transcript expects " << passages_[next_].method << " "
                  << passages_[next_].target << " (line " << passages_[next_].line
                  << "), which never came";
  }
}

std::string CannedEngine::difference(const Passage& passage, const http::ServerRequest& request) {
  const std::string wanted = "the transcript's line " + std::to_string(passage.line) + " expects " +
                             passage.method + " " + passage.target;
  if (passage.method != request.method || passage.target != targetOf(request)) {
    return wanted;
  }
  if (passage.shape.is_null() || request.body.empty()) {
    const bool same = passage.shape.is_null() && request.body.empty();
    return same ? "" : wanted + (passage.shape.is_null() ? " without a body" : " with a body");
  }
  boost::system::error_code error;
  const json::value body = json::parse(request.body, error);
  if (error || !fits(passage.shape, body)) {
    return wanted + " with another body";
  }
  return request.contentType == "application/json" ? "" : wanted + " as application/json";
}

void CannedEngine::serve(const http::ServerRequest& request, http::Responder& responder) {
  const std::lock_guard lock(mutex_);
  const std::string why =
      next_ == passages_.size() ? "the transcript is over" : difference(passages_[next_], request);
  if (!why.empty()) {
    surprises_.push_back(request.method + " " + targetOf(request) + " " + request.body +
                         " was asked, but " + why);
    responder.send({418, "text/plain", "not in the transcript", true});
    return;
  }
  const Passage& passage = passages_[next_++];
  if (passage.status == 500) {
    responder.sendRaw(silentlyClosing(passage));
    return;
  }
  const bool text = !passage.body.empty() && passage.body.front() != '{';
  responder.send({passage.status, text ? "text/plain" : "application/json", passage.body, false});
}

}  // namespace pushrod::contract
