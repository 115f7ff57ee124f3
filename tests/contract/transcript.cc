// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/transcript.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <utility>

#include <boost/json/parse.hpp>

namespace pushrod::contract {

namespace {

namespace json = boost::json;

constexpr int kDeepest = 12;

Status bad(const std::string& text) {
  return {Code::kInvalidArgument, text};
}

/// Cuts the first word off.
std::string_view word(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view first = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return first;
}

Status readRequest(std::string_view rest, Passage& passage) {
  passage.method = word(rest);
  passage.target = word(rest);
  if (passage.method.empty() || !passage.target.starts_with('/') || rest.empty()) {
    return bad("a request needs a method, a target and a shape");
  }
  if (rest == "-") {
    return {};
  }
  boost::system::error_code error;
  passage.shape = json::parse(json::string_view(rest.data(), rest.size()), error);
  return error || passage.shape.is_null() ? bad("the shape is no JSON value") : Status();
}

Status readAnswer(std::string_view rest, Passage& passage) {
  const std::string_view status = word(rest);
  const auto read = std::from_chars(status.data(), status.data() + status.size(), passage.status);
  passage.source = word(rest);
  if (read.ec != std::errc() || passage.status < 100 || passage.source.empty() || rest.empty()) {
    return bad("an answer needs a status, a source and a body");
  }
  passage.body = rest == "-" ? "" : std::string(rest);
  return {};
}

}  // namespace

bool fits(const json::value& shape, const json::value& body) {
  if (shape.is_string() && shape.get_string() == "<object>") {
    return body.is_object();
  }
  if (shape.is_string() && shape.get_string() == "<string>") {
    return body.is_string();
  }
  if (shape.is_string() && shape.get_string() == "<number>") {
    return body.is_number();
  }
  if (shape.is_array() && body.is_array()) {
    return std::equal(shape.get_array().begin(),
                      shape.get_array().end(),
                      body.get_array().begin(),
                      body.get_array().end(),
                      fits);
  }
  if (!shape.is_object() || !body.is_object()) {
    return shape == body;
  }
  if (shape.get_object().size() != body.get_object().size()) {
    return false;
  }
  for (const auto& entry : shape.get_object()) {
    const json::value* const other = body.get_object().if_contains(entry.key());
    if (other == nullptr || !fits(entry.value(), *other)) {
      return false;
    }
  }
  return true;
}

Result<Transcript> Transcript::load(const std::string& folder, const std::string& profile) {
  Transcript transcript;
  if (Status read = transcript.readFile(folder, profile, 0); !read.ok()) {
    return read;
  }
  return transcript;
}

Status Transcript::readFile(const std::string& folder, const std::string& profile, int depth) {
  const std::string path = folder + "/" + profile + ".txt";
  std::ifstream file(path);
  if (!file || depth > kDeepest) {
    return bad("the transcript " + path + " cannot be read");
  }
  base_.clear();
  current_.clear();
  std::map<std::string, Scene> own;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    if (Status read = readLine(line, number, own); !read.ok()) {
      return read.prefixed(path + " line " + std::to_string(number));
    }
  }
  // What a later file of the chain has counts only where the earlier ones lack it.
  scenes_.merge(own);
  return base_.empty() ? Status() : readFile(folder, std::string(base_), depth + 1);
}

Status Transcript::readLine(std::string_view line, int number, std::map<std::string, Scene>& own) {
  const std::string_view key = word(line);
  if (key == "base") {
    base_ = line;
    return {};
  }
  if (key == "scene" || key == "absent") {
    current_ = word(line);
    const auto [at, added] = own.try_emplace(current_);
    at->second.absent = line;
    const bool reasoned = (key == "absent") != line.empty();
    return added && reasoned && !current_.empty() ? Status() : bad("a scene twice, or no reason");
  }
  const auto scene = own.find(current_);
  if (scene == own.end() || !scene->second.absent.empty()) {
    return bad("a line outside any scene");
  }
  std::vector<Step>& steps = scene->second.steps;
  if (key == "include") {
    steps.push_back({std::string(line), {}});
    return line.empty() ? bad("include needs a name") : Status();
  }
  if (key == ">") {
    steps.emplace_back();
    steps.back().passage.line = number;
    return readRequest(line, steps.back().passage);
  }
  if (key == "<" && !steps.empty() && steps.back().include.empty() &&
      steps.back().passage.status == 0) {
    return readAnswer(line, steps.back().passage);
  }
  return bad("neither a request nor the answer to one");
}

Status Transcript::append(const std::string& name, int depth, std::vector<Passage>& into) const {
  const auto found = scenes_.find(name);
  if (found == scenes_.end() || depth > kDeepest) {
    return bad("there is no scene " + name);
  }
  if (!found->second.absent.empty()) {
    return {Code::kFailedPrecondition, found->second.absent};
  }
  for (const Step& step : found->second.steps) {
    if (step.include.empty() && step.passage.status == 0) {
      return bad("scene " + name + " has a request without its answer");
    }
    if (step.include.empty()) {
      into.push_back(step.passage);
    } else if (Status more = append(step.include, depth + 1, into); !more.ok()) {
      return more;
    }
  }
  return {};
}

Result<std::vector<Passage>> Transcript::scene(const std::string& name) const {
  std::vector<Passage> passages;
  if (Status read = append(name, 0, passages); !read.ok()) {
    return read;
  }
  return passages;
}

std::vector<std::string> Transcript::names() const {
  std::vector<std::string> all;
  for (const auto& [name, scene] : scenes_) {
    all.push_back(name);
  }
  return all;
}

}  // namespace pushrod::contract
